/**
 * Candidate formats for a kernel without a schedule, for matrices with very uneven row lengths: formats of the program that treat rows by
 * length, each with the loop partition that the cost model predicts to be fastest.
 */

import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { appliedName } from '../../ast/print/message-text.ts'
import type { MatrixStatistics } from '../../cost-model/matrix/statistics.ts'
import { hasIndices, hasIndptr, parentOf, type StoredAxis, segmentSize } from '../../ir/coordinates/axis.ts'
import type { AnyFormat, Format, OrderedFormat, PartRule } from '../../ir/formats/format.ts'
import { formatOfOrder } from '../../ir/formats/format.ts'
import type { Query } from '../../ir/formats/queries.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { axesOfBinding } from '../../run/bind/binding-names.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import type { UsedFormat } from '../../schedule/coordinates/as/format-inputs.ts'
import type { PartialPoint, PlainNest, Schedulable, SketchTarget } from '../../sketch/index.ts'
import { Decisions, scheduleNests, sketch } from '../../sketch/index.ts'

// Formats that suit segments of very different lengths, judged by their descriptions.

/**
 * True if segments are assigned to parts by their lengths, or if every element is stored separately: long segments can
 * then be treated differently.
 */
const suitsUnevenSegments = (format: OrderedFormat): boolean =>
  format.kind === 'composition' ? format.parts.some(selectsByLength) : holdsElements(format)

function selectsByLength(rule: PartRule): boolean {
  if (rule.kind === 'bucket') return true
  if (rule.kind === 'partition') return rule.parts.some(selectsByLength)
  return rule.where !== null && rule.queries.some(isLength)
}

/** True for the length of a whole segment; counts in blocks are densities. */
const isLength = (q: Query): boolean => q.kind === 'count' && q.by.every((e) => e.kind === 'var')

/** True for a list of positions with one element each. */
function holdsElements({ axes }: Format): boolean {
  const [root, ...otherAxes] = axes
  const isSingle = (a: StoredAxis): boolean => {
    const size = segmentSize(a)
    return size?.kind === 'const' && size.value === 1
  }
  return (
    root !== undefined &&
    hasIndptr(root) &&
    hasIndices(root) &&
    parentOf(root) === null &&
    otherAxes.length > 0 &&
    otherAxes.every(isSingle)
  )
}

export interface AutoSchedulable<K> extends Schedulable<K> {
  readonly compilation: Compilation
  readonly formats: ReadonlyMap<string, AnyFormat>
  readonly usedFormats: readonly UsedFormat[]
  parallel(): K
}

/** A format and a loop partition for a kernel, with its predicted time. */
interface FormatCandidate<K> {
  readonly kernel: K
  readonly plain: readonly PlainNest[]
  readonly text: string
  readonly milliseconds: number
}

/** Minimum ratio of the longest to the mean row length. Below it, the declared format partitions rows evenly enough. */
const UNEVEN = 8
/** Maximum number of formats that are compared. */
const MOST_FORMATS = 4
/** Maximum number of parts of a format, because each part adds launches. */
const MOST_PARTS = 16
/**
 * Maximum number of candidates per format (`MOST_CLIMBED`), reduced for many loop nests (`NESTS` in total), but at least `LEAST_CLIMBED`.
 * Each candidate takes some milliseconds.
 */
const MOST_CLIMBED = 8
const LEAST_CLIMBED = 3
const NESTS = 48
/** Factor by which the predicted time must fall for the search to continue from a candidate. */
const BETTER = 0.95

/** Returns true if some rows are far longer than the mean, so that another format may pay off. */
export function isUneven(statistics: MatrixStatistics | null): boolean {
  if (!statistics) return false
  const { longest, sum, count } = statistics.rowLengths
  return longest * count > UNEVEN * sum
}

interface Stored<K> {
  readonly text: string
  readonly kernel: K
  /** Scheduled kernels by sizes and decisions; null if rejected. */
  readonly made: Map<string, Pick<FormatCandidate<K>, 'kernel' | 'plain'> | null>
}
const known = new WeakMap<object, Map<string, readonly Stored<unknown>[]>>()

/** Returns the kernel with a bound tensor in other formats; empty if a step already determines its format. */
function storedFormats<K extends AutoSchedulable<K>>(kernel: K, bound: string): readonly Stored<K>[] {
  const ofKernel = getOrAdd(known, kernel, () => new Map<string, readonly Stored<unknown>[]>())
  const isDetermined = kernel.compilation.coordSteps.length > 0
  return getOrAdd(ofKernel, bound, () => (isDetermined ? [] : likely(kernel, bound))) as readonly Stored<K>[]
}

/** Returns formats used by the program's schedules with their arguments, and other formats of the program with default arguments. */
function likely<K extends AutoSchedulable<K>>(kernel: K, bound: string): readonly Stored<K>[] {
  const { source } = kernel.compilation
  const axes = axesOfBinding(source, bound).join()
  const alike = source.buffers.filter((b) => b.axes.join() === axes)
  const buffer = (alike.find((b) => b.role === 'in') ?? alike[0])?.name
  if (buffer === undefined) return []
  const out = new Map<AnyFormat, Stored<K>>()
  const take = (format: AnyFormat, args: readonly number[]): void => {
    if (out.size >= MOST_FORMATS || out.has(format)) return
    const stored = resultOrError(() => {
      if (!suitsUnevenSegments(formatOfOrder(format, alike[0]!.axes.length))) return null
      return kernel.apply([{ stage: 1, step: { kind: 'as', buffer, format, args } }])
    })
    if (!stored || stored instanceof SptError) return
    const { instance } = stored.compilation.kernel.reformats.at(-1)!
    if (instance.parts.length > MOST_PARTS || instance.given.length > 0) return
    const text = `${buffer}.format = ${appliedName(format.name, args)}`
    out.set(format, { text, kernel: stored, made: new Map() })
  }
  for (const { format, args } of kernel.usedFormats) take(format, args)
  for (const format of kernel.formats.values())
    if (format.params.every((p) => p.default !== null || p.measured)) take(format, [])
  return [...out.values()]
}

/** Maximum number of cached kernels per format. */
const MOST_MADE = 256

/**
 * For each likely format of the bound tensor, returns the candidate with the shortest predicted time, found by hill climbing from the
 * heuristic default. Formats without a prediction are omitted.
 */
export function formatCandidates<K extends AutoSchedulable<K>>(
  kernel: K,
  bound: string,
  target: SketchTarget,
  expected: (kernel: Compilation) => number | null,
): readonly FormatCandidate<K>[] {
  return storedFormats(kernel, bound).flatMap((stored) => {
    const found = climbed(stored, target, expected)
    return found ? [found] : []
  })
}

function climbed<K extends AutoSchedulable<K>>(
  stored: Stored<K>,
  target: SketchTarget,
  expected: (kernel: Compilation) => number | null,
): FormatCandidate<K> | null {
  const nests = stored.kernel.compilation.loops.body.length
  let left = Math.max(LEAST_CLIMBED, Math.min(MOST_CLIMBED, Math.floor(NESTS / Math.max(1, nests))))
  const seen = new Set<string>()
  const look = (fixed: PartialPoint) => {
    const d = new Decisions(fixed, true)
    if (resultOrError(() => sketch(stored.kernel, target, d)) instanceof SptError) return null
    const text = [stored.text, ...d.forms.map((name) => `${name} = ${d.values[name]}`)].join(', ')
    if (seen.has(text)) return null
    seen.add(text)
    left--
    const scheduled = madeOf(stored, target, d, text)
    const milliseconds = scheduled && expected(scheduled.kernel.compilation)
    return scheduled && milliseconds !== null ? { ...scheduled, text, milliseconds, d } : null
  }
  let best = look({})
  if (!best) return null
  for (let isBetter = true; isBetter && left > 0; ) {
    isBetter = false
    for (const name of best.d.forms) {
      // The values of a decision may differ after another decision changed.
      const values = best.d.requests.find((a) => a.name === name)?.values ?? []
      for (const value of values) {
        if (left <= 0 || value === best.d.values[name]) continue
        const forms = Object.fromEntries(best.d.forms.map((f) => [f, best!.d.values[f]!]))
        const other = look({ ...forms, [name]: value })
        if (!other || other.milliseconds >= BETTER * best.milliseconds) continue
        best = other
        isBetter = true
      }
    }
  }
  const { kernel, plain, text, milliseconds } = best
  return { kernel, plain, text, milliseconds }
}

function madeOf<K extends AutoSchedulable<K>>(
  { kernel, made }: Stored<K>,
  target: SketchTarget,
  d: Decisions,
  text: string,
): Pick<FormatCandidate<K>, 'kernel' | 'plain'> | null {
  const key = JSON.stringify([target, text])
  const before = made.get(key)
  if (before !== undefined) return before
  const result = resultOrError(() => scheduleNests(kernel, target, new Decisions(d.values, true)))
  const taken = result instanceof SptError ? null : result
  if (made.size >= MOST_MADE) made.delete(made.keys().next().value!)
  made.set(key, taken)
  return taken
}
