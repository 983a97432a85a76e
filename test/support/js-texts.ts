/** The device suite's kernels in JavaScript, written by hand: entries loop over their grid themselves. */
import type { ArgSpec, ModuleText } from '../../src/runtime/device.ts'
import { ARGS, type SuiteTexts } from './device-suite.ts'

function js(name: string, text: string, entries: Readonly<Record<string, readonly ArgSpec[]>>): ModuleText {
  return {
    target: 'js',
    name,
    text,
    entries: Object.entries(entries).map(([entry, args]) => ({
      name: entry,
      args,
      block: [1, 1, 1],
      sharedBytes: 0,
    })),
  }
}

const one = (): [number, number, number] => [1, 1, 1]

const scale = js(
  'scale',
  'export function scale(x, alpha, y, n) { for (let i = 0; i < n; i++) y[i] = alpha * x[i] }',
  { scale: ARGS.scale },
)

const sums = js(
  'sums',
  `export function sums(x, y, n) {
  for (let s = 0; s < n; s++) {
    y[s] = 0
    for (let t = 0; t < 64; t++) y[s] += x[64 * s + t]
  }
}`,
  { sums: ARGS.sums },
)

const scalars = js(
  'scalars',
  `export function scalars(a, y, b, c, d, e) {
  y.set([a, b, c, d === true ? 1 : d === false ? 0 : NaN, e])
}`,
  { scalars: ARGS.scalars },
)

const steps = js(
  'steps',
  `export function increment(y, n) { for (let i = 0; i < n; i++) y[i] += 1 }
export function double(y, n) { for (let i = 0; i < n; i++) y[i] *= 2 }`,
  { increment: ARGS.increment, double: ARGS.double },
)

const blocks = js('blocks', 'export function blocks(y) { for (let k = 0; k < 24; k++) y[k] = k }', {
  blocks: ARGS.blocks,
})

const broken = js('broken', 'export function blocks(y) {\n  y[0] = 1 nowhere\n}', { blocks: ARGS.blocks })

export const JS_TEXTS: SuiteTexts = {
  scale: { module: scale, grid: one },
  sums: { module: sums, grid: one },
  scalars: { module: scalars, grid: one },
  steps: { module: steps, grid: one },
  blocks: { module: blocks, grid: () => [2, 3, 4] },
  // Engines do not say where in its text a function is wrong.
  broken: { module: broken, line: null, token: 'nowhere' },
}
