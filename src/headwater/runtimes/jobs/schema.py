"""The tables of a queue: one SQLite file."""

from __future__ import annotations

from headwater.runtimes.jobs.states import TRANSITIONS, State

VERSION = 1

_TABLES = """
create table settings (name text primary key, value text not null) without rowid;
create table jobs (number integer primary key, version text not null unique, text text not null);
create table totals (
    one integer primary key check (one = 1),
    taken integer not null, done integer not null, made integer not null,
    compute real not null, framework real not null
);
insert into totals values (1, 0, 0, 0, 0, 0);
create table samples (
    at real primary key,
    taken integer not null, done integer not null, made integer not null,
    compute real not null, framework real not null
) without rowid;
create table events (
    number integer primary key,
    version text not null, id text not null,
    stored text,
    at real,
    unique (version, id)
);
create index open_events on events (version, at) where stored is not null;
create table executions (
    number integer primary key autoincrement,
    key text not null unique,
    version text not null,
    generation integer not null default 0,
    state text not null,
    events text not null,
    parameters text not null default '{}',
    enqueued real not null,
    ended real
);
create index executions_by_state on executions (state, number);
create table steps (
    execution integer not null references executions (number),
    step text not null,
    place integer not null,
    state text not null,
    generation integer not null default 0,
    attempts integer not null default 0,
    tries integer not null default 0,
    interrupted integer not null default 0,
    due real,
    started real,
    folder text,
    boot text,
    output text,
    reason text,
    stderr text,
    primary key (execution, step)
) without rowid;
create index steps_by_state on steps (state, execution, place);
create table outputs (
    execution integer not null, generation integer not null, ordinal integer not null,
    id integer not null, value text not null,
    primary key (execution, generation, ordinal)
) without rowid;
create table tellings (
    number integer primary key autoincrement,
    execution integer not null, generation integer not null,
    told integer not null default 0,
    snapshot text not null,
    provenance text,
    at real not null,
    unique (execution, generation)
);
create index untold on tellings (number) where told = 0;
create table counts (state text primary key, number integer not null) without rowid;
create table transitions (before text, after text, primary key (before, after)) without rowid;
"""

_TRIGGERS = """
create trigger step_moves before update of state on steps
when new.state <> old.state and not exists (
    select 1 from transitions where before = old.state and after = new.state
)
begin select raise(abort, 'not a way between states'); end;
create trigger execution_added after insert on executions
begin update counts set number = number + 1 where state = new.state; end;
create trigger execution_moved after update of state on executions when new.state <> old.state
begin
    update counts set number = number - 1 where state = old.state;
    update counts set number = number + 1 where state = new.state;
end;
create trigger execution_removed after delete on executions
begin update counts set number = number - 1 where state = old.state; end;
"""


def script() -> str:
    """What makes a new file."""
    ways = ", ".join(f"('{before}', '{after}')" for before, after in TRANSITIONS)
    states = ", ".join(f"('{state}', 0)" for state in State)
    return (
        f"begin immediate;{_TABLES}{_TRIGGERS}"
        f"insert into transitions values {ways};"
        f"insert into counts values {states};"
        f"pragma user_version = {VERSION}; commit;"
    )
