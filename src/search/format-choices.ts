/** Decisions of how sparse tensors are stored, among the formats that a program has and that fit. */
import type { Kernel } from '../api/kernel.ts'
import { fail } from '../ast/diagnostic.ts'
import { isDenseRoot } from '../ir/axis.ts'
import type { AnyFormat, FormatParam } from '../ir/format.ts'
import type { Decisions } from './sketch/index.ts'

/** How one tensor, and what shares its structure, is stored. */
export interface FormatChoice {
  readonly buffer: string
  /** The format as after `as`; empty: as it is declared. */
  decide(d: Decisions): string
}

const DECLARED = 'as declared'
/** What integers of formats stand for is theirs: powers of two are what widths, heights and counts mostly are. */
const INTEGERS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
const FRACTIONS = [0.25, 0.5, 0.75]

/** @throws SptError `search/unknown-tensor` where `given` names one that is not sparse */
export function formatChoices(
  kernel: Kernel,
  given: Readonly<Record<string, readonly string[]>> | undefined,
): readonly FormatChoice[] {
  const sparse = sparseTensors(kernel)
  if (!given) {
    // What is stored by a step already is as the caller wants it.
    const free = kernel.compilation.kernel.reformats.length === 0 ? sparse : []
    return free.map(({ name, order }) => packaged(name, order, kernel.formats))
  }
  return Object.entries(given).map(([buffer, texts]) => {
    if (!sparse.some((b) => b.name === buffer || b.like.includes(buffer)))
      fail({
        code: 'search/unknown-tensor',
        message: `${kernel.name} has no sparse tensor ${buffer}`,
        lookup: { name: buffer, candidates: sparse.map((b) => b.name) },
        expected: 'the name of a buffer with sparse axes',
      })
    const names = texts.map((t) => (t === '' ? DECLARED : t))
    return {
      buffer,
      decide(d) {
        const text = d.choose(`${buffer}.format`, names)
        return text === DECLARED ? '' : text
      },
    }
  })
}

interface SparseTensor {
  readonly name: string
  readonly order: number
  /** Others with its structure. */
  readonly like: readonly string[]
}

/** One of each structure, an input where there is one. */
function sparseTensors(kernel: Kernel): readonly SparseTensor[] {
  const { axes, buffers } = kernel.compilation.kernel
  const dense = new Set(axes.filter(isDenseRoot).map((a) => a.name))
  const by = new Map<string, { name: string; role: string; order: number }[]>()
  for (const b of buffers) {
    if (b.axes.every((a) => dense.has(a))) continue
    const key = b.axes.join()
    by.set(key, [...(by.get(key) ?? []), { name: b.name, role: b.role, order: b.axes.length }])
  }
  return [...by.values()].map((group) => {
    const first = group.find((b) => b.role === 'in') ?? group[0]!
    return { name: first.name, order: first.order, like: group.filter((b) => b !== first).map((b) => b.name) }
  })
}

function packaged(buffer: string, order: number, formats: ReadonlyMap<string, AnyFormat>): FormatChoice {
  const fitting = [...formats].filter(([, f]) => fits(f, order))
  const names = [DECLARED, ...fitting.map(([name]) => name)]
  return {
    buffer,
    decide(d) {
      const name = d.choose(`${buffer}.format`, names)
      const format = formats.get(name)
      if (name === DECLARED || !format) return ''
      const args = format.params
        .filter((p) => !p.measured)
        .map((p) =>
          p.kind === 'real'
            ? d.choose(`${buffer}.${p.name}`, FRACTIONS, 0.5)
            : d.choose(`${buffer}.${p.name}`, INTEGERS, 4),
        )
      return args.length === 0 ? name : `${name}(${args.join(', ')})`
    },
  }
}

function fits(format: AnyFormat, order: number): boolean {
  const numbers = (p: FormatParam) => p.kind === 'integer' || p.kind === 'real'
  return (format.kind === 'family' || format.over.length === order) && format.params.every(numbers)
}
