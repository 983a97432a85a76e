/**
 * How well a distilled dispatch selects: on generated families of matrices that the distillation has not seen, the time that the cost
 * model predicts for the schedule of the dispatch, divided by the time for the schedule of the distilled one (geometric mean, worst).
 *
 *   node dist/bench/distilled.js [--kernels spmm,spmv] [--devices cuda,webgpu] [--rows 5000]
 */
import { predictedTimes } from '../src/api/auto-schedule/predicted-times.ts'
import { kindOf, modelFor, type SelectionInputs } from '../src/api/dispatch/device-facts.ts'
import { flatInputs } from '../src/api/inputs/flat-inputs.ts'
import { SptError, valueOrError } from '../src/ast/diagnostics/diagnostic.ts'
import { coords, load } from '../src/node.ts'
import { installStoredModels } from '../src/search/calibrate/stored.ts'
import { distil } from '../src/search/choice/distil.ts'
import { generateMember } from './families/matrix-family.ts'
import { FAMILIES } from './families.ts'
import { geometricMean } from './gpu/statistics.ts'
import { option, packageFile, table } from './support.ts'

installStoredModels()
/** H100. */
const FACTS = {
  capability: 9,
  processors: 132,
  features: ['f16', 'subgroups', 'lanes(32)', 'subgroup_size(32)'],
}
const WIDTHS = [8, 24, 48, 96, 256]
const rows: (string | number)[][] = []
for (const file of (option('kernels') ?? 'spmm,spmv,sddmm').split(','))
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
    for (const name of Object.keys(FAMILIES)) {
      const m = generateMember(FAMILIES, `${name}:${option('rows') ?? 5000}:9`)!
      const A = coords(m.shape, [m.rows, m.columns], new Float32Array(m.rows.length).fill(1))
      for (const d of free.length > 0 ? WIDTHS : [0]) {
        const params = Object.fromEntries(free.map((p) => [p.name, d]))
        const inputs: SelectionInputs = { tensors: { [sparse.name]: A }, params, ...given }
        const kernels = []
        for (const k of [kernel, distilled]) {
          const variant = await valueOrError(() => k.choose(device, ...flatInputs(inputs)))
          if (!(variant instanceof SptError)) kernels.push(variant.kernel.compilation)
        }
        if (kernels.length < 2) continue
        const sizes = new Map(Object.entries({ ...params, m: m.shape[0]!, n: m.shape[1]! }))
        const [own, ours] = predictedTimes(
          modelFor(device),
          kindOf(device),
          source,
          { [sparse.name]: A },
          sizes,
          kernels,
        )
        if (own && ours) shares.push(own / ours)
      }
    }
    const plans = new Set(
      distilled.open!.choice!.branches.flatMap((b) =>
        b.calls.map((c) => JSON.stringify([c.schedule.name, c.args])),
      ),
    )
    const { length } = distilled.open!.choice!.branches
    rows.push([
      file,
      device,
      shares.length,
      geometricMean(shares),
      Math.min(...shares),
      plans.size,
      length,
      took / 1e3,
    ])
    console.error(rows.at(-1)!.join(' '))
  }
console.log(table(['kernel', 'device', 'cases', 'share', 'worst', 'plans', 'branches', 'seconds'], rows))
