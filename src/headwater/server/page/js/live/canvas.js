// The canvas: a painted picture that moves along with time, what is pointed at and selected on top, keys and pointers.

import { h } from "../dom.js";
import { layout, ticks } from "./layout.js";
import { neighbours } from "./model.js";
import { curve, shape } from "./paint.js";
import { painter, palette, scene } from "./pictures.js";
import { cut } from "../trace/shown.js";

const MOVE = 700; // milliseconds until what is new has slid in
const SHAPES = { source: 0, result: 1, step: 2 };
const NEAR = { mouse: 10, touch: 22, pen: 14 };

/** Whether this machine keeps up: if frames come late again and again, fewer pixels (1), then nothing slides any more (2). */
function calmer() {
  let [last, late, all] = [null, 0, 0];
  const pace = {
    level: 0,
    /** A frame while something moves; true when fewer pixels should be drawn from now on. */
    drawn(now) {
      if (last !== null) {
        all += 1;
        if (now - last > 28) late += 1;
      }
      last = now;
      if (all < 120) return false;
      const slow = late > all / 3;
      [late, all] = [0, 0];
      if (!slow || pace.level > 1) return false;
      pace.level += 1;
      return pace.level === 1 && devicePixelRatio > 1;
    },
    rested: () => { last = null; },
  };
  return pace;
}

/** The figure; `show(vertices, watermark)`, `select(key)`, `end()`; it tells `selected(vertex | null)` and `opened(vertex)`. */
export function canvas({ selected, opened }) {
  const element = h("canvas", { tabindex: 0, role: "application", "aria-roledescription": "graph", "aria-label": "Live graph. Left and right go along time, up and down along edges, Enter traces, Escape lets go.", "aria-describedby": "live-selected" });
  const tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  const box = h("div", { class: "stage" }, element, tip);
  const context = element.getContext("2d");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const pictures = painter(painted);
  const pace = calmer();
  let colours = palette(document.documentElement);
  let [vertices, watermark] = [[], null];
  let [size, ratio] = [[0, 0], 1];
  let front = null; // {picture, placed}: what is seen
  let before = null; // what was seen until now, while it fades
  let [window_, moved] = [null, null]; // the span of time at the moment; how it moves
  let [pointed, chosen] = [null, null];
  let wanted = false;

  function show(list, mark) {
    [vertices, watermark] = [list, mark];
    if (!size[0]) return;
    const placed = layout(vertices, { width: size[0], height: size[1], watermark: mark === null ? null : Date.parse(mark) });
    pictures.paint(scene(placed, vertices, colours, ratio), placed);
  }

  function painted(picture, placed) {
    before?.picture.close?.();
    const fresh = { picture, placed };
    const quick = still.matches || pace.level > 1 || !front || front.placed.width !== placed.width;
    before = quick ? null : front;
    if (quick) front?.picture.close?.();
    front = fresh;
    const to = [placed.begin, placed.end];
    // Far away, as after a jump in time, it does not run there but fades.
    const far = window_ && (to[0] > window_[1] || to[1] < window_[0]);
    if (quick || far || !window_) [window_, moved] = [to, quick ? null : { from: to, to, start: performance.now() }];
    else moved = { from: [...window_], to, start: performance.now() };
    pointed = pointed && front.placed.places.has(pointed) ? pointed : null;
    draw();
  }

  function draw() {
    if (wanted) return;
    wanted = true;
    requestAnimationFrame(frame);
  }

  function frame(now) {
    wanted = false;
    if (!front) return;
    let part = 1;
    if (moved) {
      if (pace.drawn(now)) sized();
      part = Math.min(1, (now - moved.start) / MOVE);
      const eased = 1 - (1 - part) ** 3;
      window_ = moved.from.map((from, at) => from + (moved.to[at] - from) * eased);
      if (part === 1) {
        moved = null;
        pace.rested();
      }
    }
    const [width, height] = size;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    grid(width);
    const fade = before ? Math.min(1, part * 2.5) : 1;
    if (before && fade < 1) copy(before, 1 - fade);
    else if (before) {
      before.picture.close?.();
      before = null;
    }
    copy(front, fade);
    lanes(front.placed);
    highlight();
    if (moved || before) draw();
  }

  /** Where a time of a layout is now. */
  const across = (placed, x) => {
    const time = placed.begin + (x - placed.left) / placed.scale;
    const scale = (placed.end - placed.begin) / (window_[1] - window_[0]);
    return placed.left + (time - window_[0]) * placed.scale * scale;
  };

  function copy({ picture, placed }, alpha) {
    const [from, to] = [across(placed, 0), across(placed, placed.width)];
    context.globalAlpha = alpha;
    context.drawImage(picture, from, 0, to - from, placed.height);
    context.globalAlpha = 1;
  }

  function grid(width) {
    const { placed } = front;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.strokeStyle = colours.line;
    context.fillStyle = colours.muted;
    context.lineWidth = 1;
    const { step, list } = ticks(...window_, width);
    const words = new Intl.DateTimeFormat(undefined, step >= 864e5 ? { month: "short", day: "numeric" } : step >= 6e4 ? { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } : { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: step < 1000 ? 3 : undefined, hourCycle: "h23" });
    const place = (time) => placed.left + ((time - window_[0]) / (window_[1] - window_[0])) * (placed.end - placed.begin) * placed.scale;
    context.beginPath();
    for (const time of list) {
      const x = Math.round(place(time)) + 0.5;
      context.moveTo(x, 4);
      context.lineTo(x, placed.axis + 4);
    }
    context.stroke();
    for (const time of list) {
      const text = words.format(time);
      const half = context.measureText(text).width / 2;
      context.fillText(text, Math.min(width - 2 * half - 2, Math.max(2, place(time) - half)), placed.axis + 14);
    }
    const mark = watermark === null ? NaN : Date.parse(watermark);
    if (mark >= window_[0] && mark <= window_[1] + (window_[1] - window_[0]) / 50) {
      const x = Math.min(width - 3, place(mark));
      context.strokeStyle = colours.accent;
      context.fillStyle = colours.accent;
      context.setLineDash([4, 4]);
      context.beginPath();
      context.moveTo(x, 16);
      context.lineTo(x, placed.axis + 4);
      context.stroke();
      context.setLineDash([]);
      const room = context.measureText("watermark").width;
      context.fillText("watermark", Math.max(2, Math.min(x - room / 2, width - room - 2)), 9);
    }
  }

  function lanes(placed) {
    context.font = "600 11px system-ui, sans-serif";
    context.fillStyle = colours.muted;
    context.strokeStyle = colours.panel;
    context.lineJoin = "round";
    context.lineWidth = 4;
    for (const lane of placed.lanes) {
      context.strokeText(cut(lane.name, 40), 8, lane.top + 6);
      context.fillText(cut(lane.name, 40), 8, lane.top + 6);
    }
  }

  function highlight() {
    const { placed } = front;
    for (const [key, strong] of [[chosen, true], [pointed, pointed !== chosen]]) {
      const place = strong && placed.places.get(key);
      if (!place) continue;
      const own = across(placed, place.x);
      const near = neighbours(place.vertex).map((one) => placed.places.get(one.key)).filter(Boolean);
      context.strokeStyle = colours.accent;
      context.lineWidth = 1.8;
      context.beginPath();
      for (const other of near) curve(context, own, place.y, across(placed, other.x), other.y);
      context.stroke();
      for (const other of [...near, place]) {
        context.beginPath();
        shape(context, SHAPES[other.vertex.kind], across(placed, other.x), other.y, placed.radius + (other === place ? 5 : 3));
        context.lineWidth = other === place ? 2.5 : 1.6;
        context.stroke();
      }
    }
  }

  function at(event) {
    if (!front) return null;
    const box_ = element.getBoundingClientRect();
    const [x, y] = [event.clientX - box_.left, event.clientY - box_.top];
    let [found, least] = [null, (NEAR[event.pointerType] ?? 12) + front.placed.radius];
    for (const [key, place] of front.placed.places) {
      const far = Math.hypot(across(front.placed, place.x) - x, place.y - y);
      if (far < least) [found, least] = [key, far];
    }
    return found;
  }

  element.addEventListener("pointermove", (event) => {
    const key = at(event);
    if (key === pointed) return;
    pointed = key;
    element.classList.toggle("over", Boolean(key));
    const place = key && front.placed.places.get(key);
    tip.hidden = !place;
    if (place) {
      tip.textContent = `${cut(place.vertex.name, 40)} ${cut(place.vertex.id, 40)}`;
      const x = across(front.placed, place.x);
      tip.style.setProperty("left", `${Math.max(4, Math.min(x + 12, size[0] - 8 - 7.2 * tip.textContent.length))}px`);
      tip.style.setProperty("top", `${Math.max(2, place.y - 34)}px`);
    }
    draw();
  });
  element.addEventListener("pointerleave", () => {
    pointed = null;
    tip.hidden = true;
    draw();
  });
  element.addEventListener("click", (event) => choose(at(event)));

  function choose(key, quiet = false) {
    chosen = key;
    draw();
    if (!quiet) selected(key ? vertices.find((one) => one.key === key) ?? null : null);
  }

  /** Keys: along a lane by time, across by edges. */
  element.addEventListener("keydown", (event) => {
    if (!front || event.ctrlKey || event.metaKey || event.altKey) return;
    const place = front.placed.places.get(chosen);
    const act = { Escape: () => choose(null), Enter: () => place && opened(place.vertex), ArrowLeft: () => along(place, -1), ArrowRight: () => along(place, 1), Home: () => along(null, 1), End: () => along(null, -1), ArrowUp: () => over(place, -1), ArrowDown: () => over(place, 1) }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  function along(place, turn) {
    const same = [...front.placed.places.values()].filter((one) => !place || (one.vertex.kind === place.vertex.kind && one.vertex.name === place.vertex.name));
    const order = same.sort((a, b) => a.x - b.x || a.y - b.y);
    const now = place ? order.indexOf(place) : turn > 0 ? -1 : order.length;
    const to = order[Math.max(0, Math.min(order.length - 1, now + turn))];
    if (to) choose(to.vertex.key);
  }

  function over(place, turn) {
    if (!place) return along(null, -1);
    const near = neighbours(place.vertex).map((one) => front.placed.places.get(one.key)).filter((one) => one && Math.sign(one.y - place.y) === turn);
    const to = near.sort((a, b) => Math.abs(a.x - place.x) - Math.abs(b.x - place.x))[0];
    if (to) choose(to.vertex.key);
  }

  function sized() {
    ratio = pace.level ? 1 : Math.min(2, devicePixelRatio || 1);
    [element.width, element.height] = [size[0] * ratio, size[1] * ratio];
  }

  const watch = new ResizeObserver(([{ contentRect }]) => {
    const [width, height] = [Math.floor(contentRect.width), Math.floor(contentRect.height)];
    if (!width || !height || (width === size[0] && height === size[1])) return;
    size = [width, height];
    sized();
    show(vertices, watermark);
    draw();
  });
  watch.observe(box);
  const themed = () => {
    colours = palette(document.documentElement);
    show(vertices, watermark);
  };
  dark.addEventListener("change", themed);
  document.addEventListener("headwater-theme", themed);

  return {
    box, show,
    select: (key) => choose(key, true),
    focus: () => element.focus(),
    end() {
      watch.disconnect();
      pictures.end();
      dark.removeEventListener("change", themed);
      document.removeEventListener("headwater-theme", themed);
      [front, before] = [null, null];
    },
  };
}
