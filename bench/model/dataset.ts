/** Records with what a model knows before measuring: terms of the kernel on the data, and statistics of the data. */
import type { Kernel } from '../../src/node.ts'
import { termsOn } from '../../src/search/model/prediction.ts'
import { type MatrixStatistics, statisticsOf } from '../../src/search/model/statistics.ts'
import type { Structure } from '../../src/search/model/structure.ts'
import type { Terms } from '../../src/search/model/terms.ts'
import { FAMILIES } from '../families.ts'
import { kernelOf, parseCandidate } from '../gpu/candidates.ts'
import { inputs, structured } from '../gpu/declared.ts'
import { type Csr, sources } from '../gpu/matrix.ts'
import type { Measured } from './records.ts'

export interface Sample extends Measured {
  readonly median: number
  readonly terms: Terms
  readonly statistics: MatrixStatistics
}

/** A library's routine has no terms. */
export const isLibrary = (m: Measured): boolean => !m.candidate.includes('.spt:')

export const caseOf = (m: Measured): string => `${m.device} ${m.suite} ${m.data} ${m.width}`

/** What is left out together when a model is judged: a family, or one real matrix. */
export const familyOf = (m: Measured): string => m.data.split(':')[0]!

export const isDrawn = (m: Measured): boolean => familyOf(m) in FAMILIES

const sizesOf = (m: Measured, A: Csr): Readonly<Record<string, number>> => ({
  m: A.rows,
  n: A.columns,
  ...(m.suite === 'spmm' || m.suite === 'sddmm' ? { d: m.width } : {}),
})

/** Of records that were measured; those whose kernel cannot be made, or whose terms not found, are named and left out. */
export async function samplesOf(
  records: readonly Measured[],
  folder: string,
  say: (text: string) => void,
): Promise<readonly Sample[]> {
  const kernels = new Map<string, Kernel>()
  const out: Sample[] = []
  for (const data of new Set(records.map((r) => r.data))) {
    const own = records.filter((r) => r.data === data && r.status === 'ok' && !isLibrary(r))
    const [source] = sources(folder, [data], false).found
    if (!source || own.length === 0) continue
    const A = await source.read()
    const start = performance.now()
    const statistics = statisticsOf(A)
    const took = performance.now() - start
    const stored = new Map<string, Map<string, Structure>>()
    for (const r of own) {
      try {
        const kernel = kernels.get(r.candidate) ?? (await kernelOf(parseCandidate(r.candidate))).kernel
        kernels.set(r.candidate, kernel)
        const { source } = kernel
        const first = inputs(source)[0]!.name
        const tensors = { [first]: structured(source, [A.rows, A.columns], A, null, 'f32') }
        const structures = stored.get(r.suite) ?? new Map<string, Structure>()
        stored.set(r.suite, structures)
        const terms = termsOn(kernel.compilation, {
          tensors,
          params: sizesOf(r, A),
          statistics,
          structures,
        })
        out.push({ ...r, median: r.median!, terms, statistics })
      } catch (error) {
        say(`${r.candidate} on ${data}: ${error instanceof Error ? error.message : error}`)
      }
    }
    say(
      `${data}: ${own.length} records, statistics ${took.toFixed(1)} ms, all ${((performance.now() - start) / 1000).toFixed(1)} s`,
    )
  }
  return out
}
