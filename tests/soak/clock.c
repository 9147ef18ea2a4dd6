/* Another time of day for a process and its children, preloaded: `cc -shared -fPIC -o clock.so clock.c`.
 *
 * The file HEADWATER_CLOCK holds one 64-bit number: by how many seconds the clock is off. It is mapped,
 * so that a jump is seen at once by all. Time as it passes (the monotonic clocks) is left alone, and
 * deadlines in the shifted time are shifted back, as a machine whose clock is set does by itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t none = 0;
static volatile int64_t *off = &none;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("HEADWATER_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *there = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (there != MAP_FAILED) off = there;
    close(file);
}

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

int clock_gettime(clockid_t clock, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = next("clock_gettime");
    int done = real(clock, at);
    if (!done && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += *off;
    return done;
}

int gettimeofday(struct timeval *at, void *zone) {
    static int (*real)(struct timeval *, void *);
    if (!real) real = next("gettimeofday");
    int done = real(at, zone);
    if (!done && at) at->tv_sec += *off;
    return done;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}

/* A deadline since 1970 is by the clock; a smaller one is by the time since the machine's start. */
static struct timespec meant(const struct timespec *deadline) {
    struct timespec found = *deadline;
    if (found.tv_sec > 500000000) found.tv_sec -= *off;
    return found;
}

int sem_timedwait(sem_t *semaphore, const struct timespec *deadline) {
    static int (*real)(sem_t *, const struct timespec *);
    if (!real) real = next("sem_timedwait");
    struct timespec until = meant(deadline);
    return real(semaphore, &until);
}

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *deadline) {
    static int (*real)(pthread_mutex_t *, const struct timespec *);
    if (!real) real = next("pthread_mutex_timedlock");
    struct timespec until = meant(deadline);
    return real(mutex, &until);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                           const struct timespec *deadline) {
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    /* glibc has an older one of this name, which dlsym may find. */
    if (!real) real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!real) real = next("pthread_cond_timedwait");
    struct timespec until = meant(deadline);
    return real(condition, mutex, &until);
}
