// The worker that paints: it is sent scenes and sends back pictures. Of scenes that wait, only the last is painted.

import { paint } from "./paint.js";

let waiting = null;

self.onmessage = ({ data }) => {
  if (!waiting) setTimeout(work);
  waiting = data;
};

function work() {
  const scene = waiting;
  waiting = null;
  const canvas = new OffscreenCanvas(Math.max(1, scene.width * scene.ratio), Math.max(1, scene.height * scene.ratio));
  paint(canvas.getContext("2d"), scene);
  const picture = canvas.transferToImageBitmap();
  self.postMessage({ picture, number: scene.number }, [picture]);
}
