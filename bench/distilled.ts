/**
 * How well a distilled dispatch selects: on generated families of matrices and files that the distillation has not seen, the time that
 * the cost model predicts for the schedule of the dispatch, divided by the time for the schedule of the distilled one (geometric mean,
 * 5th percentile, worst; cases for which the distilled one has no schedule).
 *
 *   node dist/bench/distilled.js [--kernels spmm,sddmm] [--devices cuda,webgpu] [--rows 3000] [--seed 77] [--data FOLDER]
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { predictedTimes } from '../src/api/auto-schedule/predicted-times.ts'
import { kindOf, modelFor, type SelectionInputs } from '../src/api/dispatch/device-facts.ts'
import { flatInputs } from '../src/api/inputs/flat-inputs.ts'
import { SptError, valueOrError } from '../src/ast/diagnostics/diagnostic.ts'
import { coords, load, readTensor } from '../src/node.ts'
import { installStoredModels } from '../src/search/calibrate/stored.ts'
import { distil } from '../src/search/choice/distil.ts'
import type { CoordTensor } from '../src/storage/tensor.ts'
import { generateMember } from './families/matrix-family.ts'
import { FAMILIES } from './families.ts'
import { geometricMean } from './gpu/statistics.ts'
import { count, option, packageFile, table } from './support.ts'

installStoredModels()
/** H100. */
const FACTS = {
  capability: 9,
  processors: 132,
  features: ['f16', 'subgroups', 'lanes(32)', 'subgroup_size(32)'],
}
const WIDTHS = [8, 24, 33, 48, 96, 100, 256]

async function unseen(): Promise<readonly CoordTensor[]> {
  const all = Object.keys(FAMILIES).map((name): CoordTensor => {
    const { shape, rows, columns } = generateMember(
      FAMILIES,
      `${name}:${count('rows', 3000)}:${count('seed', 77)}`,
    )!
    return coords(shape, [rows, columns], new Float32Array(rows.length).fill(1))
  })
  const folder = option('data')
  for (const file of folder ? readdirSync(folder) : []) {
    const read = await valueOrError(() => readTensor(join(folder!, file)))
    if (!(read instanceof SptError) && read.kind === 'coords' && read.shape.length === 2) all.push(read)
  }
  return all
}

const matrices = await unseen()
const rows: (string | number)[][] = []
for (const file of (option('kernels') ?? 'spmm,sddmm').split(','))
  for (const device of (option('devices') ?? 'cuda,webgpu').split(',') as ('cuda' | 'webgpu')[]) {
    const kernel = (await load(packageFile(`kernels/${file}.spt`))).kernel(file).schedule('auto')
    const given = { ...FACTS, ...(device === 'webgpu' && { capability: undefined }) }
    const start = performance.now()
    const distilled = await distil(kernel, device, { facts: given })
    const took = performance.now() - start
    const { source } = kernel
    const sparse = source.buffers.find((b) => b.role === 'in' && b.axes.includes('j') && b.axes.length === 2)!
    const free = source.params.filter((p) => p.kind === 'size' && !['m', 'n'].includes(p.name))
    const shares: number[] = []
    let without = 0
    for (const A of matrices)
      for (const d of free.length > 0 ? WIDTHS : [0]) {
        const params = Object.fromEntries(free.map((p) => [p.name, d]))
        const inputs: SelectionInputs = { tensors: { [sparse.name]: A }, params, ...given }
        const [own, ours] = await Promise.all(
          [kernel, distilled].map((k) => valueOrError(() => k.choose(device, ...flatInputs(inputs)))),
        )
        if (!own || own instanceof SptError) continue
        if (!ours || ours instanceof SptError) {
          without++
          continue
        }
        const sizes = new Map(Object.entries({ ...params, m: A.shape[0]!, n: A.shape[1]! }))
        const kernels = [own, ours].map((v) => v.kernel.compilation)
        const [a, b] = predictedTimes(
          modelFor(device),
          kindOf(device),
          source,
          { [sparse.name]: A },
          sizes,
          kernels,
        )
        if (a && b) shares.push(a / b)
      }
    const sorted = shares.toSorted((a, b) => a - b)
    const { branches } = distilled.open!.choice!
    const plans = new Set(
      branches.flatMap((b) => b.calls.map((c) => JSON.stringify([c.schedule.name, c.args]))),
    )
    rows.push([
      file,
      device,
      shares.length,
      geometricMean(shares),
      sorted[Math.floor(sorted.length / 20)]!,
      sorted[0]!,
      without,
      plans.size,
      branches.length,
      took / 1e3,
    ])
    console.error(rows.at(-1)!.join(' '))
  }
const head = ['kernel', 'device', 'cases', 'share', '5 %', 'worst', 'without', 'plans', 'branches', 'seconds']
console.log(table(head, rows))
