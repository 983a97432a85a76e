/** The parts that a tensor is stored in, after all steps that stored it or its parts in formats. */

import { failAt, type Span } from '../../ast/diagnostics/diagnostic.ts'
import { orList } from '../../ast/diagnostics/suggest.ts'
import { isFused } from '../../ir/coordinates/axis.ts'
import type { RuntimePart } from '../../ir/coordinates/runtime-lists.ts'
import type { Iteration, Kernel1, Reformat } from '../../ir/coordinates/stage1.ts'
import { iterationsOf, writtenBuffers1 } from '../../ir/coordinates/stage1-tree.ts'
import type { FormatInstance } from '../../ir/formats/format.ts'

interface Level {
  /** The buffer that the step stored in a format. */
  readonly was: string
  readonly reformat: Reformat
  /** Index of the part in the format. */
  readonly part: number
}

export interface StoredPart {
  readonly buffer: string
  /** The part's labels in all steps that split it: the suffix of its names. Empty if no step split the tensor. */
  readonly label: string
  /** The formats that the part went through, the latest first. */
  readonly formats: readonly FormatInstance[]
  /** Suffixes of the part's copies, for names that existed before the first, the second, … step that split it. */
  readonly endings: readonly string[]
  /** The part's copies of all buffers with its structure, by their original names. */
  readonly copies: ReadonlyMap<string, string>
  /** The axis of the consumers of a list that is built at run time. Loops that build the list have the axis, too. */
  readonly along?: string
}

/**
 * Returns the parts of a tensor, or of one of its parts, in order; a part that was split again is replaced by its
 * parts. @throws SptError `schedule/no-parts`
 */
export function partsOf(
  kernel: Kernel1,
  buffer: { readonly name: string; readonly span?: Span | undefined },
): readonly StoredPart[] {
  let now: { readonly buffer: string; readonly levels: readonly Level[] }[] = []
  for (const reformat of kernel.reformats) {
    const fresh = reformat.buffers.filter((b) => !now.some((p) => p.buffer === b.name))
    now = [...now, ...fresh.map((b) => ({ buffer: b.name, levels: [] }))].flatMap((p) => {
      const b = reformat.buffers.find((x) => x.name === p.buffer)
      if (!b) return [p]
      return b.parts.map((name, part) => ({
        buffer: name,
        levels: [...p.levels, { was: b.name, reformat, part }],
      }))
    })
  }
  const found = now.filter((p) => p.levels.some((l) => l.was === buffer.name))
  if (found.length > 0) return found.map((p) => storedPart(p.buffer, p.levels))
  const stored = [...new Set(kernel.reformats.flatMap((r) => r.buffers.map((b) => b.name)))]
  const live = kernel.runtimeLists?.findLast((f) => f.tensor === buffer.name)
  if (live) return live.parts.map((p) => foundPart(p, live.tensor))
  return failAt('schedule/no-parts', buffer.span, {
    message: `no step before stores ${buffer.name} in a format`,
    expected: stored.length > 0 ? orList(stored) : `${buffer.name} as … before`,
    ...(stored.length > 0 && { lookup: { name: buffer.name, candidates: stored } }),
    hint: `write \`${buffer.name} as …\` first`,
  })
}

/** Returns the axis of this name in a format of the part, if possible one that still exists. */
export function axisOf({ formats }: StoredPart, kernel: Kernel1, name: string): string | undefined {
  const axes = formats.flatMap((f) => f.names.get(name) ?? [])
  return axes.find((a) => kernel.axes.some((x) => x.name === a)) ?? axes[0]
}

/** Returns the iterations over a part: over axes of its format, or over a fused axis with such an axis. */
export function iterationsOver(
  { formats, along, buffer }: StoredPart,
  kernel: Kernel1,
): readonly Iteration[] {
  const own = new Set(along === undefined ? formats[0]!.axes.map((a) => a.name) : [along])
  for (const a of kernel.axes) if (isFused(a) && a.members.some((m) => own.has(m))) own.add(a.name)
  const over = iterationsOf(kernel.body).filter((it) => it.iters.some((x) => own.has(x.axis)))
  return along === undefined ? over : over.filter((it) => !writtenBuffers1([it]).has(buffer))
}

/** Returns the loop over an axis; for a list built at run time, the consumer's and not the builder's. */
export function loopOver(part: StoredPart, kernel: Kernel1, axis: string): string {
  if (part.along === undefined) return axis
  const [it, other] = iterationsOver(part, kernel).filter((x) => x.iters.some((y) => y.name === axis))
  return it && !other ? `${it.name}.${axis}` : axis
}

const foundPart = ({ buffer, label, instance, axis }: RuntimePart, tensor: string): StoredPart => ({
  along: axis,
  buffer,
  label,
  formats: [instance],
  endings: label === '' ? [] : [label],
  copies: new Map([[tensor, buffer]]),
})

function storedPart(buffer: string, levels: readonly Level[]): StoredPart {
  const parts = levels.map((l) => l.reformat.instance.parts[l.part]!)
  const labels = parts.map((p) => p.label).filter((l) => l !== '')
  const copies = new Map<string, string>()
  levels.forEach((first, k) => {
    for (const b of first.reformat.buffers) {
      let name = b.name
      for (const { reformat, part } of levels.slice(k))
        name = reformat.buffers.find((x) => x.name === name)?.parts[part] ?? name
      copies.set(b.name, name)
    }
  })
  return {
    buffer,
    label: labels.join('_'),
    formats: parts.map((p) => p.instance).reverse(),
    endings: labels.map((_, k) => labels.slice(k).join('_')),
    copies,
  }
}
