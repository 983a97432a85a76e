/** Records with what a model knows before measuring: terms of the kernel on the data, and statistics of the data. */

import { basename } from 'node:path'
import { BUILD } from '../../src/cache/build.ts'
import { cacheFolder, cacheKey, openCache } from '../../src/cache/disk-cache.ts'
import { type MatrixStatistics, statisticsOf } from '../../src/cost-model/matrix/statistics.ts'
import type { Structure } from '../../src/cost-model/matrix/structure.ts'
import { termsOfCompilation } from '../../src/cost-model/prediction.ts'
import type { Terms } from '../../src/cost-model/terms.ts'
import type { Kernel } from '../../src/node.ts'
import { runOn } from '../../src/run/compile/program.ts'
import { FAMILIES } from '../families.ts'
import { kernelOf, parseCandidate } from '../gpu/candidates.ts'
import { inputs, structured } from '../gpu/declared.ts'
import { type Csr, sources } from '../gpu/matrix.ts'
import { option, packageFile } from '../support.ts'
import { type Measured, recordsIn, textOf } from './records.ts'

export interface Sample extends Measured {
  readonly median: number
  readonly terms: Terms
  /** `null`: of a tensor that is no matrix. */
  readonly statistics: MatrixStatistics | null
  /** How much it counts beside others: 1. */
  readonly weight?: number
}

/** What was measured of an H100, by the kind of device; what has a weight is many times of a few schedules alike. */
const MEASURED: Readonly<Record<string, readonly string[]>> = {
  cuda: ['h100', 'h100-cuda-choices', 'h100-cuda-spaces', 'h100-cuda-numberings', 'h100-cuda-tensor-cores'],
  webgpu: ['h100-webgpu-choices'],
}

const WEIGHTS: Readonly<Record<string, number>> = { 'h100-cuda-tensor-cores': 0.5 }

type Weighted = Measured & Pick<Sample, 'weight'>

const recordsOf = (file: string): readonly Weighted[] => {
  const weight = WEIGHTS[basename(file, '.jsonl.gz')]
  const records = recordsIn(textOf(file))
  return weight === undefined ? records : records.map((r) => ({ ...r, weight }))
}

/** Records of the files of `--measured A,B`, or of those for `--device` (`cuda`). */
export function measured(): readonly Weighted[] {
  const kind = option('device') ?? 'cuda'
  const own = (MEASURED[kind] ?? []).map((f) => packageFile(`bench/model/measured/${f}.jsonl.gz`))
  const files = option('measured')?.split(',') ?? own
  const all = files.flatMap(recordsOf)
  return all.filter((r) => r.status === 'ok' && (option('device') === undefined || r.device === kind))
}

/** A library's routine has no terms; nor has what is chosen when data are bound. */
export const isLibrary = (m: Measured): boolean => !m.candidate.includes('.spt:')
export const isStandard = (m: Measured): boolean => m.candidate.endsWith('.auto')

export const caseOf = (m: Measured): string => `${m.device} ${m.suite} ${m.data} ${m.width}`

/** What is left out together when a model is judged: a family, or one real matrix. */
export const familyOf = (m: Measured): string => m.data.split(':')[0]!

export const isDrawn = (m: Measured): boolean => familyOf(m) in FAMILIES

export const sizesOf = (m: Measured, A: Csr): Readonly<Record<string, number>> => ({
  m: A.rows,
  n: A.columns,
  ...(m.suite === 'spmm' || m.suite === 'sddmm' ? { d: m.width } : {}),
})

/** A matrix that records name; `null` where it is not there. */
export async function matrixOf(folder: string, data: string): Promise<Csr | null> {
  const [source] = sources(folder, [data], false).found
  return source ? source.read() : null
}

/** The sparse operand of a kernel. */
export const operandOf = ({ source }: Kernel, A: Csr) => ({
  [inputs(source)[0]!.name]: structured(source, [A.rows, A.columns], A, null, 'f32'),
})

/** What is known before measuring, kept between runs of one build: finding it for 10⁴ records takes minutes. */
interface Known {
  /** `null`: of a tensor that is no matrix. */
  readonly statistics: MatrixStatistics | null
  /** By record; `null` where the kernel cannot be made, or its terms not found. */
  readonly terms: readonly (Terms | null)[]
}

/** Of records that were measured; those whose kernel cannot be made, or whose terms not found, are named and left out. */
export async function samplesOf(
  records: readonly Measured[],
  folder: string,
  say: (text: string) => void,
): Promise<readonly Sample[]> {
  const base = BUILD === '' ? undefined : cacheFolder(undefined)
  const cache = openCache(base && `${base}/terms`, 'json', 400)
  const kernels = new Map<string, Kernel>()
  const out: Sample[] = []
  for (const data of new Set(records.map((r) => r.data))) {
    const own = records.filter((r) => r.data === data && !isLibrary(r) && !isStandard(r))
    const key = cacheKey(['terms', BUILD, data, ...own.map((r) => `${r.suite} ${r.width} ${r.candidate}`)])
    const kept = own.length > 0 ? await cache.load(key) : undefined
    let known = kept && decoded(kept)
    if (!known) {
      const A = own.length > 0 ? await matrixOf(folder, data) : null
      if (!A) continue
      known = await knownOf(A, own, kernels, say)
      await cache.store(key, encoded(known))
    }
    const { statistics, terms } = known
    own.forEach((r, k) => {
      const t = terms[k]
      if (t) out.push({ ...r, median: r.median!, terms: t, statistics })
    })
  }
  return out
}

async function knownOf(
  A: Csr,
  records: readonly Measured[],
  kernels: Map<string, Kernel>,
  say: (text: string) => void,
): Promise<Known> {
  const start = performance.now()
  const statistics = statisticsOf(A)
  const stored = new Map<string, Map<string, Structure>>()
  const terms: (Terms | null)[] = []
  for (const r of records)
    try {
      const kernel = kernels.get(r.candidate) ?? (await kernelOf(parseCandidate(r.candidate))).kernel
      kernels.set(r.candidate, kernel)
      const structures = stored.get(r.suite) ?? new Map<string, Structure>()
      stored.set(r.suite, structures)
      const given = { tensors: operandOf(kernel, A), params: sizesOf(r, A), statistics, structures }
      terms.push(termsOfCompilation(runOn(kernel, r.device).compilation, given))
    } catch (error) {
      say(`${r.candidate} on ${A.name}: ${error instanceof Error ? error.message : error}`)
      terms.push(null)
    }
  say(`${A.name}: ${records.length} records, ${((performance.now() - start) / 1000).toFixed(1)} s`)
  return { statistics, terms }
}

const encoded = (known: Known): Uint8Array =>
  Buffer.from(JSON.stringify(known, (_, v) => (v instanceof Map ? { map: [...v] } : v)))

const decoded = (bytes: Uint8Array): Known =>
  JSON.parse(Buffer.from(bytes).toString(), (_, v) => (Array.isArray(v?.map) ? new Map(v.map) : v)) as Known
