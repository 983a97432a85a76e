/**
 * An image task that a seed generates: the ten digits as strokes, turned, sheared, scaled and moved, drawn with pens of different
 * width, with noise, and a part of each hidden.
 */
import { normal, uniform } from './random.mjs'

export const SIDE = 16
export const CLASSES = 10

/** An arc around (x, y) from one angle to another, in turns, as points. */
const arc = (x, y, rx, ry, from, to) =>
  Array.from({ length: 13 }, (_, k) => {
    const angle = 2 * Math.PI * (from + ((to - from) * k) / 12)
    return [x + rx * Math.cos(angle), y + ry * Math.sin(angle)]
  })

/** Strokes of each digit in [−1, 1]², y downwards. */
const STROKES = [
  [arc(0, 0, 0.6, 0.9, 0, 1)],
  [
    [
      [-0.4, -0.5],
      [0.1, -0.9],
      [0.1, 0.9],
    ],
  ],
  [[...arc(0, -0.4, 0.55, 0.5, 0.5, 1.08), [-0.6, 0.9], [0.6, 0.9]]],
  [arc(0, -0.45, 0.5, 0.45, 0.55, 1.25), arc(0, 0.45, 0.55, 0.45, 0.75, 1.45)],
  [
    [
      [0.25, 0.9],
      [0.25, -0.9],
      [-0.6, 0.3],
      [0.65, 0.3],
    ],
  ],
  [
    [
      [0.5, -0.9],
      [-0.4, -0.9],
      [-0.45, -0.1],
    ],
    arc(0, 0.35, 0.5, 0.55, 0.62, 1.4),
  ],
  [
    [
      [0.4, -0.9],
      [-0.3, -0.2],
      [-0.5, 0.4],
    ],
    arc(0, 0.4, 0.5, 0.5, 0, 1),
  ],
  [
    [
      [-0.6, -0.9],
      [0.6, -0.9],
      [-0.1, 0.9],
    ],
  ],
  [arc(0, -0.45, 0.42, 0.42, 0, 1), arc(0, 0.45, 0.52, 0.45, 0, 1)],
  [
    arc(0, -0.4, 0.5, 0.5, 0, 1),
    [
      [0.5, -0.4],
      [0.3, 0.9],
    ],
  ],
]

function distance(x, y, [ax, ay], [bx, by]) {
  const [dx, dy] = [bx - ax, by - ay]
  const t = Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1)))
  return Math.hypot(x - ax - t * dx, y - ay - t * dy)
}

function draw(image, digit, random) {
  const between = (least, most) => least + (most - least) * random()
  const turn = between(-0.18, 0.18)
  const shear = between(-0.15, 0.15)
  const [wide, high] = [between(3.2, 5.2), between(4.2, 6.4)]
  const [cx, cy] = [7.5 + between(-1, 1), 7.5 + between(-0.75, 0.75)]
  const pen = between(0.5, 1.1)
  const [c, s] = [Math.cos(turn), Math.sin(turn)]
  const strokes = STROKES[digit].map((points) =>
    points.map(([x, y]) => {
      const [u, v] = [(x + shear * y) * wide, y * high]
      return [cx + c * u - s * v, cy + s * u + c * v]
    }),
  )
  // A square of up to 5 × 5 is hidden.
  const hidden = [between(0, SIDE), between(0, SIDE), between(1, 2.5)]
  for (let y = 0; y < SIDE; y++)
    for (let x = 0; x < SIDE; x++) {
      let least = Number.POSITIVE_INFINITY
      for (const points of strokes)
        for (let k = 1; k < points.length; k++)
          least = Math.min(least, distance(x, y, points[k - 1], points[k]))
      const inside = Math.max(Math.abs(x - hidden[0]), Math.abs(y - hidden[1])) < hidden[2]
      const ink = inside ? 0 : Math.max(0, Math.min(1, pen + 0.5 - least))
      image[y * SIDE + x] = ink - 0.2 + 0.25 * normal(random)
    }
}

/** `count` images, [count, 256], with their labels: every class as often as the others. */
export function glyphs(count, seed) {
  const random = uniform(seed)
  const X = new Float32Array(count * SIDE * SIDE)
  const labels = Int32Array.from({ length: count }, (_, k) => k % CLASSES)
  for (let k = 0; k < count; k++) draw(X.subarray(k * SIDE * SIDE, (k + 1) * SIDE * SIDE), labels[k], random)
  return { X, labels }
}
