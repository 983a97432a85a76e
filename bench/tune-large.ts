/**
 * How long tuning takes on a matrix that is large: everything from binding on, conversions and the reference included.
 *
 *   node dist/bench/tune-large.js [--device cuda] [--matrix reddit-like] [--suite spmm] [--width 128] [--trials 16]
 *     [--seconds 40] [--data FOLDER] [--wait FILE]
 *
 * `--wait`: begins once the file is there, with the matrix made.
 */

import { existsSync } from 'node:fs'
import { flatInputs } from '../src/api/inputs/flat-inputs.ts'
import { devices, load } from '../src/node.ts'
import { costModel, costPrior, predictor, tune } from '../src/search.ts'
import { inputs as inputsOf, structured } from './gpu/declared.ts'
import { describe, sources } from './gpu/matrix.ts'
import { count, option, packageFile } from './support.ts'

const start = performance.now()
const seconds = (): string => `${((performance.now() - start) / 1000).toFixed(1)} s`
const kind = (option('device') ?? 'cuda') as 'cpu' | 'cuda'
const suite = option('suite') ?? 'spmm'
const [source] = sources(option('data') ?? 'data', [option('matrix') ?? 'reddit-like'], false).found
const A = await source!.read()
console.log(`${seconds()} ${describe(A)}`)
const signal = option('wait')
while (signal !== undefined && !existsSync(signal)) await new Promise((done) => setTimeout(done, 200))
const device = await devices[kind]()
const kernel = (await load(packageFile(`kernels/${suite}.spt`))).kernel(suite)
const tensors = {
  [inputsOf(kernel.source)[0]!.name]: structured(kernel.source, [A.rows, A.columns], A, A.values, 'f32'),
}
const inputs = { tensors, params: { d: count('width', 128) }, seed: 1 }

const begin = performance.now()
const since = (): string => `${((performance.now() - begin) / 1000).toFixed(1)} s`
const space = await kernel
  .space(kind === 'cpu' ? 'cpu_space' : 'gpu_space')
  .bind(device, ...flatInputs(inputs))
console.log(`${since()} space ${space.name}`)
const predict = costModel(kind) && predictor(kernel, { device: kind, inputs })
console.log(`${since()} statistics`)
const result = await tune(kernel, {
  space,
  inputs,
  device,
  trials: count('trials', 16),
  seconds: count('seconds', 40),
  prior: predict ? costPrior(space, predict) : undefined,
  onProgress({ trialsDone, best, library }) {
    const ms = (t: typeof best): string =>
      t?.outcome.status === 'measured' ? t.outcome.timing.median.toFixed(3) : '-'
    console.log(
      `${since()} ${trialsDone} done, best ${ms(best)} ms${library?.outcome.status === 'measured' ? `, ${library.name} ${library.outcome.timing.median.toFixed(3)} ms` : ''}`,
    )
  },
})
for (const { name, schedule, outcome } of result.finalists)
  console.log(
    `  ${schedule ?? name}: ${outcome.status === 'measured' ? `${outcome.timing.median.toFixed(4)} ms` : outcome.status}`,
  )
console.log(`  best: ${result.best?.kernel.trace.join('; ')}`)
console.log(
  `tuned in ${since()}, ${result.trials.length} trials, ended by ${result.stopReason}; ${device.name}`,
)
await device.dispose()
