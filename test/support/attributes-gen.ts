/** Kernels of dense tensors that follow each other, with zeros, masks and traps (f(0) ≠ 0) in them, and integer data. */
import type { Inputs } from '../../src/run/bind/index.ts'
import type { Choices } from './choices.ts'

export interface Attributed {
  readonly text: string
  /** Of each input and temporary, its shape. */
  readonly shapes: Readonly<Record<string, readonly number[]>>
  readonly sizes: Readonly<Record<string, number>>
  readonly inputs: readonly string[]
  readonly dtype: 'f32' | 'i32'
}

/** Axes and their sizes: i and j are as long as each other, so that a matrix may be read across. */
const SIZE = { i: 'm', j: 'm', p: 'd' } as const
type AxisName = keyof typeof SIZE

const SHAPES: readonly (readonly AxisName[])[] = [
  ['i', 'j'],
  ['i', 'j'],
  ['i', 'p'],
  ['j', 'p'],
  ['i'],
  ['j', 'i'],
]

interface Tensor {
  readonly name: string
  readonly axes: readonly AxisName[]
}

export function attributed(c: Choices): Attributed {
  const dtype = c.pick(['f32', 'i32'] as const)
  const sizes = { m: c.pick([3, 2, 4, 1, 0]), d: c.pick([2, 1, 3]) }
  const number = (x: number): string => (dtype === 'f32' ? `${x}.0` : `${x}`)
  const inputs: Tensor[] = ['M', 'X', 'Y'].map((name, k) => ({
    name,
    axes: k === 0 ? ['i', 'j'] : c.pick(SHAPES),
  }))
  const known = [...inputs]
  const made: string[] = []
  const buffers: string[] = []
  const count = c.between(2, 5)
  for (let k = 0; k < count; k++) {
    const last = k === count - 1
    const again = !last && k > 0 && c.chance(12) ? c.pick(known.slice(3)) : undefined
    const target: Tensor = again ?? { name: last ? 'O' : `T${k}`, axes: c.pick(SHAPES) }
    const others = (['i', 'j', 'p'] as const).filter((a) => !target.axes.includes(a))
    const reduces = c.chance(50)
    const more = reduces ? others.filter(() => c.chance(60)) : []
    const iters = [...target.axes, ...more]
    const value = expression(c, known, iters, number, c.between(1, 3))
    // Small enough for sums of products to be exact.
    const small = dtype === 'f32' ? `max(min(${value}, 3.0), -3.0)` : value
    const way = reduces ? c.pick(['+', '+', 'max', 'min']) : ''
    const statement = `${access(target, target.axes)} ${way}= ${small}`
    const held = c.chance(20)
      ? `if (${load(c, known, iters) ?? number(1)} ${c.pick(['!=', '>', '=='])} ${number(0)}) { ${statement} }`
      : statement
    const kinds = `${'S'.repeat(target.axes.length)}${'R'.repeat(more.length)}`
    made.push(`  iterate t${k} [${iters.join(', ')}] as ${kinds} { ${held} }`)
    if (!again) {
      buffers.push(
        `  buffer ${target.name}: ${dtype}[${target.axes.join(', ')}] ${last || c.chance(10) ? 'out' : 'local'}`,
      )
      if (!last) known.push(target)
    }
  }
  const shapes = Object.fromEntries(
    [...known, { name: 'O', axes: [] }].map((t) => [t.name, t.axes.map((a) => sizes[SIZE[a]])]),
  )
  const text = `kernel k(m: size, d: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(m)
  axis p = dense_fixed(d)
${inputs.map((t) => `  buffer ${t.name}: ${dtype}[${t.axes.join(', ')}] in`).join('\n')}
${buffers.join('\n')}
${made.join('\n')}
}`
  return { text, shapes, sizes, inputs: inputs.map((t) => t.name), dtype }
}

const access = (t: Tensor, index: readonly string[]): string => `${t.name}[${index.join(', ')}]`

/** An element of a tensor at iterators that are as long as its dimensions: later tensors are likelier. */
function load(c: Choices, known: readonly Tensor[], iters: readonly AxisName[]): string | undefined {
  const fit = known.filter((t) => t.axes.every((a) => iters.some((x) => SIZE[x] === SIZE[a])))
  if (fit.length === 0) return undefined
  const t = fit[fit.length - 1 - Math.min(c.below(fit.length), c.below(fit.length))]!
  const across = c.chance(15)
  return access(
    t,
    t.axes.map((a) => (iters.includes(a) && !across ? a : c.pick(iters.filter((x) => SIZE[x] === SIZE[a])))),
  )
}

function expression(
  c: Choices,
  known: readonly Tensor[],
  iters: readonly AxisName[],
  number: (x: number) => string,
  depth: number,
): string {
  const leaf = (): string => (c.chance(15) ? number(c.below(3)) : (load(c, known, iters) ?? number(1)))
  if (depth === 0) return leaf()
  const of = (): string => expression(c, known, iters, number, depth - 1 - c.below(2) < 0 ? 0 : depth - 1)
  switch (c.pick(['mul', 'mul', 'mul', 'add', 'sub', 'relu', 'trap', 'select', 'leaf'] as const)) {
    case 'mul':
      return `(${of()} * ${of()})`
    case 'add':
      return `(${of()} + ${of()})`
    case 'sub':
      return `(${of()} - ${of()})`
    case 'relu':
      return `max(${of()}, ${number(0)})`
    case 'trap':
      return c.pick([`(${of()} + ${number(1)})`, `max(${of()}, ${number(1)})`])
    case 'select':
      return `select(${leaf()} ${c.pick(['!=', '>', '=='])} ${number(0)}, ${of()}, ${of()})`
    case 'leaf':
      return leaf()
  }
}

/** Values of the inputs, many of them zero. */
export function valuesOf(c: Choices, s: Attributed): Readonly<Record<string, readonly number[]>> {
  const size = (name: string): number => s.shapes[name]!.reduce((x, y) => x * y, 1)
  return Object.fromEntries(
    s.inputs.map((name) => [name, Array.from({ length: size(name) }, () => c.pick([0, 1, 0, 2, -1]))]),
  )
}

/** The same as they are bound. */
export const boundInputs = (s: Attributed, values: Readonly<Record<string, readonly number[]>>): Inputs => ({
  params: s.sizes,
  tensors: Object.fromEntries(
    s.inputs.map((name) => [
      name,
      {
        kind: 'dense',
        dtype: s.dtype,
        shape: s.shapes[name]!,
        values: (s.dtype === 'f32' ? Float32Array : Int32Array).from(values[name]!),
      },
    ]),
  ),
})
