/** A generated case as a user hands it over and gets it back: files, tensors, dictionaries. */
import { readFile } from 'node:fs/promises'
import { type Bindable, coords, dense, load, type SptProgram, type Tensor } from '../../src/node.ts'
import { FORMATS } from './formats.ts'
import type { Case } from './generate.ts'
import { type Buffer, type Data, type Program, printed } from './model.ts'
import { fromBits } from './numbers.ts'
import { chainOf, elements } from './structure.ts'
import { storedIn } from './tensors.ts'

const PACKAGED = ['formats', 'formats-composed', 'formats-tensors']

export const textOf = (p: Program, schedules = ''): string =>
  [...PACKAGED.map((f) => `import "./kernels/${f}.spt"`), FORMATS, printed(p), schedules].join('\n')

/** The program of a text that imports the packaged formats. */
export const loaded = (text: string): Promise<SptProgram> =>
  load('case.spt', {
    read: async (path) =>
      path.endsWith('case.spt')
        ? text
        : readFile(new URL(`../../${path.slice(path.indexOf('kernels/'))}`, import.meta.url), 'utf8'),
  })

const extents = (p: Program, axes: readonly string[]): number[] =>
  axes.map((a) => p.chains.flatMap((c) => c.levels).find((l) => l.axis === a)!.extent.value)

const isDense = (p: Program, b: Buffer): boolean =>
  b.axes.every((a) => {
    const { levels } = chainOf(p, a)
    return levels.slice(0, levels.findIndex((l) => l.axis === a) + 1).every((l) => l.kind === 'dense_fixed')
  })

const columns = (at: readonly (readonly number[])[], rank: number): number[][] =>
  Array.from({ length: rank }, (_, d) => at.map((c) => c[d]!))

/** One input as a tensor. */
export function tensorOf(p: Program, b: Buffer, values: readonly number[]): Tensor {
  const shape = extents(p, b.axes)
  if (isDense(p, b)) return dense(shape, values, b.type)
  const all = elements(p, b.axes)
  const present = storedIn(p, b)
  const at = all.filter(present)
  return coords(
    shape,
    columns(at, shape.length),
    values.filter((_, e) => present(all[e]!)),
    b.type,
  )
}

/** What is bound: inputs, and the structure of chains that no input has in full. */
export function inputsOf(
  { program: p }: Case,
  data: Data,
): {
  tensors: Record<string, Bindable>
  params: Record<string, number>
} {
  const tensors: Record<string, Bindable> = {}
  for (const b of p.buffers) {
    const values = data.get(b.name)
    if (values) tensors[b.name] = tensorOf(p, b, values)
  }
  for (const { levels, stored } of p.chains) {
    if (levels.every((l) => l.kind === 'dense_fixed')) continue
    const axes = levels.map((l) => l.axis)
    const whole = (b: Buffer): boolean => data.has(b.name) && axes.every((a, k) => b.axes[k] === a)
    if (p.buffers.some(whole)) continue
    tensors[axes.at(-1)!] = coords(extents(p, axes), columns(stored, axes.length))
  }
  const params = Object.fromEntries([...p.sizes, ...p.scalars].map((s) => [s.name, s.value]))
  return { tensors, params }
}

/** Elements of a tensor by coordinates `i,j`. */
export function dictionary(t: Tensor): Map<string, number> {
  const decoded = (x: number): number => (t.dtype === 'f16' || t.dtype === 'bf16' ? fromBits(t.dtype, x) : x)
  const values = Array.from(t.values!, decoded)
  if (t.kind === 'coords') return new Map(values.map((x, e) => [t.coords.map((c) => c[e]).join(','), x]))
  if (t.kind === 'stored') throw new Error('outputs are dense or by coordinates')
  const at = (e: number): string => {
    const out: number[] = []
    for (const n of t.shape.toReversed()) {
      out.unshift(e % n)
      e = Math.floor(e / n)
    }
    return out.join(',')
  }
  return new Map(values.map((x, e) => [at(e), x]))
}
