/** Which part of the axis the timeline shows, and how zooming and panning change it. */

export interface Camera {
  /** The point of the axis at the left edge. */
  readonly left: number;
  /** Units of the axis per pixel. */
  readonly unit: number;
}

/** The room that a camera moves in: the axis, and how many pixels wide it is drawn. */
export interface Room {
  readonly length: number;
  readonly width: number;
  /** The fewest units that fill the width. */
  readonly least: number;
}

export const wholeOf = ({ length, width }: Room): Camera => ({ left: 0, unit: length / Math.max(1, width) });

export const toPixel = ({ left, unit }: Camera, x: number): number => (x - left) / unit;
export const toAxis = ({ left, unit }: Camera, pixel: number): number => left + pixel * unit;

function within({ length, width, least }: Room, { left, unit }: Camera): Camera {
  const wide = Math.max(1, width);
  const held = Math.min(length / wide, Math.max(Math.min(least, length) / wide, unit));
  return { unit: held, left: Math.min(Math.max(0, left), length - held * wide) };
}

/** Zooms by a factor, below 1 to see less and closer, with the point under a pixel staying there. */
export function zoom(room: Room, camera: Camera, factor: number, pixel: number): Camera {
  const point = toAxis(camera, pixel);
  const { unit } = within(room, { ...camera, unit: camera.unit * factor });
  return within(room, { unit, left: point - pixel * unit });
}

export const pan = (room: Room, camera: Camera, pixels: number): Camera =>
  within(room, { ...camera, left: camera.left + pixels * camera.unit });

/** Shows a part of the axis in full, with some room beside it. */
export function showing(room: Room, from: number, to: number, margin = 0.04): Camera {
  const span = Math.max(to - from, room.least);
  const unit = (span * (1 + 2 * margin)) / Math.max(1, room.width);
  return within(room, { unit, left: (from + to) / 2 - (unit * room.width) / 2 });
}

/** The same, moving no more than needed. */
export function reaching(room: Room, camera: Camera, from: number, to: number): Camera {
  const right = toAxis(camera, room.width);
  if (from >= camera.left && to <= right) return camera;
  const span = room.width * camera.unit;
  return to - from > span ? showing(room, from, to) : within(room, { ...camera, left: (from + to) / 2 - span / 2 });
}

/** A camera between two others, `share` of the way: zooming is even, and the way straight on screen. */
export function between(a: Camera, b: Camera, share: number): Camera {
  const unit = a.unit * (b.unit / a.unit) ** share;
  if (Math.abs(b.unit - a.unit) < 1e-9 * a.unit) return { unit, left: a.left + (b.left - a.left) * share };
  const progress = (unit - a.unit) / (b.unit - a.unit);
  return { unit, left: a.left + (b.left - a.left) * progress };
}
