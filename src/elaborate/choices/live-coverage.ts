/**
 * Availability of fill ratios in conditions: before a run for bound data, or from the previous run for formats that are
 * built at run time.
 */
import type { Diagnostic } from '../../ast/diagnostics/diagnostic.ts'
import type { AsStep } from '../../ast/nodes/nodes.ts'
import { isDenseChain } from '../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { formatOfOrder, type OrderedFormat } from '../../ir/formats/format.ts'
import { report } from '../diagnostics.ts'
import type { AppliedFormat, Choice, Schedule } from '../schedules/schedule-types.ts'
import type { Statistic } from './choice-names.ts'
import { type Coverage, coverageText, formatText } from './fill-ratios.ts'

/**
 * The statistics, with `live` for formats that one of the schedules builds at run time. Reports fill ratios of other
 * dense tensors that the kernel computes, which are unknown, and warns of those that are computed once, where schedules
 * build other formats at run time.
 */
export function knownStatistics(
  statistics: ReadonlyMap<string, Statistic>,
  schedules: readonly Schedule[],
  { axes, buffers }: Kernel1,
): Pick<Choice, 'statistics' | 'warnings'> {
  const byName = new Map(axes.map((a) => [a.name, a]))
  const isDense = (b: Kernel1['buffers'][number]): boolean => b.axes.every((a) => isDenseChain(byName, a))
  const isBound = (b: Kernel1['buffers'][number]): boolean =>
    b.role === 'in' || b.role === 'inout' || !isDense(b)
  const found = schedules.flatMap(liveFormats)
  const isLive = (c: Coverage): boolean =>
    found.some(
      ([{ buffer }, { format }]) =>
        buffer.name === c.tensor && isAlike(formatOfOrder(format, c.format.over.length), c.format),
    )
  const out = new Map(statistics)
  const warnings: Diagnostic[] = []
  for (const [name, s] of statistics) {
    if (s.kind !== 'fill_ratio') continue
    if (isLive(s)) out.set(name, { ...s, live: true })
    else if (!isBound(buffers.find((b) => b.name === s.tensor)!))
      report('check/statistic', s.named, {
        message: `${s.tensor} is dense and not an input: the elements are unknown before the kernel runs`,
        expected: [
          ...buffers.filter(isBound).map((b) => b.name),
          `a dispatch to a schedule with ${s.tensor} as ${formatText(s)} live in place`,
        ].join(', '),
      })
    else if (found.length > 0 && isDense(buffers.find((b) => b.name === s.tensor)!))
      warnings.push({
        code: 'check/bound-fill-ratio',
        severity: 'warning',
        span: s.span,
        message: `${coverageText(s)} is computed when ${s.tensor} is bound, and no later run selects by it`,
        hint: `compare a format of ${s.tensor} that a schedule of the dispatch builds, or add a schedule with ${s.tensor} as ${formatText(s)} live in place`,
      })
  }
  return { statistics: out, warnings }
}

/** True if two formats differ in their arguments at most: compositions in place are created anew for each use. */
export const isAlike = (a: OrderedFormat, b: OrderedFormat): boolean =>
  a === b ||
  (a.kind === 'composition' &&
    b.kind === 'composition' &&
    a.parts.length === b.parts.length &&
    a.parts.every((p, k) => {
      const q = b.parts[k]!
      return p.kind === 'part' && q.kind === 'part' && isAlike(p.use.format, q.use.format)
    }))

/** The `live` formats of a schedule, and of the schedules that it uses. */
const liveFormats = (s: Schedule): readonly (readonly [AsStep, AppliedFormat])[] => [
  ...[...s.formats].filter(([step]) => step.live),
  ...[...s.uses.values()].flatMap(liveFormats),
]
