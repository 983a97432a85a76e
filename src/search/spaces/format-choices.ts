/** Decisions of how sparse tensors are stored, among the formats that a program has and that fit. */

import type { Kernel } from '../../api/kernels/kernel.ts'
import { failWith, resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument, expectDistinct, isRecord } from '../../ast/diagnostics/expect-argument.ts'
import { TEXTS } from '../../ast/diagnostics/value-kinds.ts'
import { appliedName } from '../../ast/print/message-text.ts'
import { isDenseRoot } from '../../ir/coordinates/axis.ts'
import type { AnyFormat, FormatParam } from '../../ir/formats/format.ts'
import { getOrAdd, groupBy } from '../../ir/memoize.ts'
import type { Decisions } from '../../sketch/index.ts'

/** Storage decision of one tensor and of all that share its structure. */
export interface FormatChoice {
  readonly buffer: string
  /** The format as after `as`; empty: as it is declared. */
  decide(d: Decisions): string
}

const DECLARED = 'as declared'
/** Candidate integers for format parameters: widths, heights and counts are mostly powers of two. */
const INTEGERS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
const FRACTIONS = [0.25, 0.5, 0.75]
/** Likely values of a parameter without known uses: little padding, and more than single elements. */
const LIKELY = [4, 8, 16, 32]

/** @throws SptError `search/unknown-tensor` where `requested` names one that is not sparse */
export function formatChoices(
  kernel: Kernel,
  requested: Readonly<Record<string, readonly string[]>> | undefined,
): readonly FormatChoice[] {
  const sparse = sparseTensors(kernel)
  if (!requested) {
    // A kernel with a step `as` keeps the formats of its caller.
    const free = kernel.compilation.kernel.reformats.length === 0 ? sparse : []
    return free.map(({ name, order }) => programFormats(kernel, name, order))
  }
  expectArgument(
    isRecord(requested),
    'formats',
    requested,
    "lists of formats by tensor: { A: ['', 'bsr(8)'] }",
  )
  return Object.entries(requested).map(([buffer, texts]) => {
    if (!sparse.some((b) => b.name === buffer || b.like.includes(buffer)))
      failWith('search/unknown-tensor', `${kernel.name} has no sparse tensor ${buffer}`, {
        lookup: { name: buffer, candidates: sparse.map((b) => b.name) },
        expected: 'the name of a buffer with sparse axes',
      })
    checkFormats(kernel, buffer, texts)
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

/** @throws SptError `api/argument`, and as `as`, except for errors of schedule steps, which points report */
function checkFormats(kernel: Kernel, buffer: string, texts: unknown): void {
  const expected = "formats, as after `as`: ['', 'bsr(8)']"
  const isList = TEXTS.holds(texts) && (texts as readonly string[]).length > 0
  expectArgument(isList, `formats of ${buffer}`, texts, expected)
  const list = texts as readonly string[]
  expectDistinct(`formats of ${buffer}`, list)
  for (const text of list) {
    const result = text === '' ? null : resultOrError(() => kernel.as(buffer, text))
    if (result instanceof SptError && !result.code.startsWith('schedule/')) throw result
  }
}

interface SparseTensor {
  readonly name: string
  readonly order: number
  /** Others with its structure. */
  readonly like: readonly string[]
}

/** One tensor of each structure, an input if there is one. */
function sparseTensors(kernel: Kernel): readonly SparseTensor[] {
  const { axes, buffers } = kernel.compilation.kernel
  const dense = new Set(axes.filter(isDenseRoot).map((a) => a.name))
  const sparse = buffers.filter((b) => !b.axes.every((a) => dense.has(a)))
  return [...groupBy(sparse, (b) => b.axes.join()).values()].map((group) => {
    const first = group.find((b) => b.role === 'in') ?? group[0]!
    const like = group.filter((b) => b !== first).map((b) => b.name)
    return { name: first.name, order: first.axes.length, like }
  })
}

/** Parts beyond which a tensor has launches by the dozen. */
const MAX_PARTS = 32

/** Formats and arguments that the kernel takes: each is tried once, on coordinates alone. */
function programFormats(kernel: Kernel, buffer: string, order: number): FormatChoice {
  const { formats, usedFormats } = kernel
  const accepted = new Map<string, boolean>()
  const accepts = (name: string, args: readonly number[]): boolean => {
    const text = appliedName(name, args)
    return getOrAdd(accepted, text, () => {
      const parts = resultOrError(
        () => kernel.as(buffer, text).compilation.kernel.reformats.at(-1)!.instance.parts,
      )
      return !(parts instanceof SptError) && parts.length <= MAX_PARTS
    })
  }
  /** Values of a parameter after given arguments. Small values are marked likely if later parameters have small ones. */
  const valuesOf = (
    params: readonly FormatParam[],
    before: readonly number[],
    usual: readonly number[] = [],
  ): readonly number[] => {
    const values = params[before.length]!.kind === 'real' ? FRACTIONS : INTEGERS
    return [...new Set([...values, ...usual])].sort((a, b) => a - b)
  }
  const acceptsAfter = (
    name: string,
    params: readonly FormatParam[],
    before: readonly number[],
    v: number,
  ): boolean => {
    const after = params
      .slice(before.length + 1)
      .map((p) => (p.kind === 'real' ? FRACTIONS[1]! : INTEGERS[1]!))
    return accepts(name, [...before, v, ...after])
  }
  /** Values of the next argument in the program's schedules: those after the same arguments, or otherwise after any. */
  const usedAfter = (format: AnyFormat, before: readonly number[]): readonly number[] => {
    const uses = usedFormats.filter((u) => u.format === format && u.args.length > before.length)
    const matching = uses.filter(({ args }) => before.every((v, k) => args[k] === v))
    return [...new Set((matching.length > 0 ? matching : uses).map(({ args }) => args[before.length]!))]
  }
  let names: readonly string[] | undefined
  return {
    buffer,
    decide(d) {
      names ??= [
        DECLARED,
        ...[...formats].flatMap(([name, f]) => {
          if (!fits(f, order)) return []
          const params = numbersOf(f)
          // One that is taken is enough: the others are tried where the format is chosen.
          const isAccepted =
            params.length === 0
              ? accepts(name, [])
              : valuesOf(params, []).some((v) => acceptsAfter(name, params, [], v))
          return isAccepted ? [name] : []
        }),
      ]
      const used = names.filter((n) => n === DECLARED || usedFormats.some((u) => u.format === formats.get(n)))
      const name = d.choose(`${buffer}.format`, names, DECLARED, used)
      const format = formats.get(name)
      if (name === DECLARED || !format) return ''
      const params = numbersOf(format)
      const args: number[] = []
      for (const p of params) {
        const usual = usedAfter(format, args)
        const values = valuesOf(params, args, usual).filter((v) => acceptsAfter(name, params, args, v))
        const preferred = usual.length > 0 ? usual : LIKELY
        const likely = preferred.filter((v) => values.includes(v))
        args.push(d.choose(`${buffer}.${p.name}`, values, likely[0] ?? values[values.length >> 1], likely))
      }
      return appliedName(name, args)
    },
  }
}

/** Parameters that are given; others are measured. */
const numbersOf = (format: AnyFormat): readonly FormatParam[] => format.params.filter((p) => !p.measured)

function fits(format: AnyFormat, order: number): boolean {
  const numbers = (p: FormatParam) => p.kind === 'integer' || p.kind === 'real'
  return (format.kind === 'family' || format.over.length === order) && format.params.every(numbers)
}
