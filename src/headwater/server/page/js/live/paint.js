// Drawing a graph on a canvas: edges by what they are, then vertices. It runs in a worker where there is one, so it knows
// nothing of the page: it is given places, kinds and colours as numbers and text.

// Bits of a vertex's kind.
export const SOURCE = 0;
export const RESULT = 1;
export const STEP = 2;
export const EXPIRED = 4;
export const MARKED = 8;

/** `scene`: width, height, ratio, radius, x, y, kinds (typed lists), from, to (indexes), colours. */
export function paint(context, scene) {
  const { ratio, width, height } = scene;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  edges(context, scene);
  vertices(context, scene);
}

function edges(context, { x, y, kinds, from, to, colours, radius }) {
  const strength = Math.min(0.55, Math.max(0.1, 12 / Math.sqrt(from.length || 1)));
  const groups = [
    [colours.expired, 0.8 * strength, (kind) => (kind & MARKED) === 0 && (kind & EXPIRED) !== 0],
    [colours.source, strength, (kind) => (kind & (MARKED | EXPIRED)) === 0],
    [colours.marked, Math.min(0.9, 2 * strength), (kind) => (kind & MARKED) !== 0],
  ];
  context.lineWidth = radius > 4 ? 1.2 : 1;
  for (const [colour, alpha, chosen] of groups) {
    context.strokeStyle = colour;
    context.globalAlpha = alpha;
    context.beginPath();
    let n = 0;
    for (let at = 0; at < from.length; at += 1) {
      const [a, b] = [from[at], to[at]];
      if (!chosen(kinds[a])) continue;
      curve(context, x[a], y[a], x[b], y[b]);
      // Long paths are slow to stroke.
      n += 1;
      if (n % 400 === 0) {
        context.stroke();
        context.beginPath();
      }
    }
    context.stroke();
  }
  context.globalAlpha = 1;
}

export function curve(context, x, y, toX, toY) {
  const middle = (y + toY) / 2;
  context.moveTo(x, y);
  context.bezierCurveTo(x, middle, toX, middle, toX, toY);
}

function vertices(context, { x, y, kinds, colours, radius, ground }) {
  const names = ["source", "result", "step"];
  // Past ones first, marked ones last: what matters lies on top.
  for (const bits of [EXPIRED, 0, MARKED | EXPIRED, MARKED]) {
    for (let kind = 0; kind < 3; kind += 1) {
      context.beginPath();
      for (let at = 0; at < kinds.length; at += 1) {
        if (kinds[at] === (kind | bits)) shape(context, kind, x[at], y[at], radius);
      }
      const past = bits & EXPIRED && kind !== RESULT;
      context.fillStyle = past ? (radius >= 3 ? ground : colours.expired) : bits & MARKED ? colours.marked : colours[names[kind]];
      context.strokeStyle = bits & MARKED ? colours.marked : past ? colours.expired : ground;
      context.lineWidth = past ? 1.3 : 0.7;
      context.fill();
      if (radius >= 2.4 || bits & MARKED) context.stroke();
      if (!(bits & MARKED)) continue;
      // Marked ones have a ring, for who does not see the colour.
      context.beginPath();
      for (let at = 0; at < kinds.length; at += 1) {
        if (kinds[at] === (kind | bits)) shape(context, kind, x[at], y[at], radius + 2.5);
      }
      context.lineWidth = 1.2;
      context.stroke();
    }
  }
}

/** Records are round, results square, rows of steps triangles. */
export function shape(context, kind, x, y, radius) {
  if (kind === RESULT) context.rect(x - radius * 0.9, y - radius * 0.9, radius * 1.8, radius * 1.8);
  else if (kind === STEP) {
    context.moveTo(x, y - radius * 1.1);
    context.lineTo(x + radius * 1.05, y + radius * 0.85);
    context.lineTo(x - radius * 1.05, y + radius * 0.85);
    context.closePath();
  } else {
    context.moveTo(x + radius, y);
    context.arc(x, y, radius, 0, 2 * Math.PI);
  }
}
