/**
 * Random kernels of dense tensors with axes in common: matrices and tensors over some of four axes, multiplied, with results
 * over some of these, a row-sparse operand, other iterations over the same axes, and reads at other coordinates.
 */
import type { RefTensor } from '../../src/reference/index.ts'
import type { Tensor } from '../../src/storage/tensor.ts'
import type { Choices } from './choices.ts'
import { entries, size, values } from './matrix-gen.ts'
import type { Sample } from './program-gen.ts'
import { FORMATS } from './program-parts.ts'

const AXES = { i: 'm', p: 'n', j: 'o', q: 'm' } as const
type Axis = keyof typeof AXES
const ALL = Object.keys(AXES) as Axis[]

export function sharedAxes(c: Choices): Sample {
  const dtype = c.pick(['i32', 'f32'] as const)
  const params = { m: size(c), n: size(c), o: size(c) }
  const tensors: Record<string, Tensor> = {}
  const buffers: Record<string, RefTensor> = {}
  const structure: Record<string, { coords: readonly (readonly number[])[] }> = {}
  const encoded = (numbers: readonly number[]) =>
    dtype === 'i32' ? Int32Array.from(numbers) : Float32Array.from(numbers)
  const axes = ALL.map((a) => `axis ${a} = dense_fixed(${AXES[a]})`)
  const declared: string[] = []

  const dense = (name: string, over: readonly Axis[]): string => {
    const shape = over.map((a) => params[AXES[a]])
    const some = entries(c, shape, false)
    const numbers = new Array<number>(shape.reduce((a, b) => a * b, 1)).fill(0)
    values(c, dtype, some.count, false).forEach((v, e) => {
      numbers[over.reduce((at, _, d) => at * shape[d]! + some.coords[d]![e]!, 0)] = v
    })
    tensors[name] = { kind: 'dense', shape, values: encoded(numbers), dtype }
    buffers[name] = numbers
    declared.push(`buffer ${name}: ${dtype}[${over.join(', ')}] in`)
    return `${name}[${over.join(', ')}]`
  }
  const some = (n: number): Axis[] => c.shuffle(ALL).slice(0, n)
  const order = (): number => c.pick([2, 2, 2, 3])

  const first = some(order())
  const second = c.chance(30) ? first : some(order())
  const factors = [dense('A', first), dense('B', second)]
  const used = new Set<Axis>([...first, ...second])
  if (c.chance(30)) {
    const third = some(order())
    factors.push(dense('D', third))
    for (const a of third) used.add(a)
  }
  const open: { name: string; kind: 'S' | 'R' }[] = []
  const into = c.shuffle([...used]).slice(0, c.below(3))
  const kind = (a: Axis): 'S' | 'R' => (into.includes(a) ? 'S' : 'R')
  for (const a of c.shuffle([...used])) open.push({ name: a, kind: kind(a) })
  if (used.has('i') && c.chance(25)) {
    axes.push('axis s = sparse_variable(i, n)')
    const e = entries(c, [params.m, params.n], false)
    const numbers = values(c, dtype, e.count, false)
    const coords = e.coords.map((x) => Int32Array.from(x))
    tensors.S = { kind: 'coords', shape: [params.m, params.n], coords, values: encoded(numbers), dtype }
    buffers.S = { coords: e.coords, values: numbers }
    structure.s = { coords: e.coords }
    declared.push(`buffer S: ${dtype}[i, s] in`)
    factors.push('S[i, s]')
    open.splice(open.findIndex((x) => x.name === 'i') + 1, 0, { name: 's', kind: 'R' })
  }
  declared.push(`buffer C: ${dtype}[${into.join(', ')}] out`)
  const body = [...product(c, open, `C[${into.join(', ')}] += ${factors.join(' * ')}`)]
  if (c.chance(50)) {
    const [name, over] = c.pick([
      ['A', first],
      ['B', second],
    ] as const)
    declared.push(`buffer E: ${dtype}[${over.join(', ')}] out`)
    const own = over.join(', ')
    const shifted = [`${over[0]} + 1`, ...over.slice(1)].join(', ')
    const statement = c.pick([
      `E[${own}] += ${name}[${own}]`,
      `E[${own}] = ${name}[${own}] + 1`,
      `E[${own}] += ${name}[${own}] * ${name}[${shifted}]`,
      `E[${own}] = 1`,
    ])
    body.push(`iterate other [${own}] as ${'S'.repeat(over.length)} { ${statement} }`)
  }
  return {
    text: `${FORMATS}\nkernel k(m: size, n: size, o: size) {\n  ${[...axes, ...declared, ...body].join('\n  ')}\n}\n`,
    params,
    tensors,
    reference: { params, buffers, structure },
    uses: new Set(['shared axes', dtype]),
    stored: ['A', 'B', 'D', 'E', 'C'].filter((b) => b !== 'D' || factors.length > 2),
  }
}

/** The statement in one iteration, or in one within another. */
function product(
  c: Choices,
  open: readonly { readonly name: string; readonly kind: string }[],
  statement: string,
): string[] {
  const iterate = (name: string, over: typeof open, body: string): string =>
    `iterate ${name} [${over.map((x) => x.name).join(', ')}] as ${over.map((x) => x.kind).join('')} { ${body} }`
  const at = c.chance(30) ? c.below(open.length) : 0
  if (at === 0) return [iterate('sum', open, statement)]
  return [iterate('outer', open.slice(0, at), iterate('inner', open.slice(at), statement))]
}
