/**
 * The comparison with installed peers on one machine: suites of cases, every result checked against float64 before it is
 * timed, tables at the end and JSON along the way. `spt bench` is its command.
 */
import { checkSchedules, checkWritable } from './asked.ts'
import { DeviceLost } from './device-lost.ts'
import { goOn, inherited, MOST_CULPRITS } from './loss.ts'
import { checkData, type DataKind } from './named.ts'
import { messageOf } from './ours.ts'
import { buildingText, preparationText, suiteText } from './report.ts'
import { type Options, Session } from './session.ts'
import { blockSparse } from './suites/block-sparse.ts'
import { coraGraph } from './suites/cora-graph.ts'
import { dynamic } from './suites/dynamic.ts'
import { dynamicAttention, raggedAttention } from './suites/dynamic-attention.ts'
import { dynamicBuilding } from './suites/dynamic-building.ts'
import { expertLayers } from './suites/expert-layer.ts'
import { gemm } from './suites/gemm.ts'
import { GROUPED, overGroups } from './suites/grouped.ts'
import { maskedTraining } from './suites/masked-training.ts'
import { overMatrices } from './suites/matrices.ts'
import { products } from './suites/products.ts'
import { rectifiedLayers } from './suites/rectified-layer.ts'
import { sampledBlocks } from './suites/sampled-blocks.ts'
import { samples } from './suites/samples.ts'
import { softmax } from './suites/softmax.ts'
import { tileWise } from './suites/tile-wise.ts'
import { spmv } from './suites/vectors.ts'
import { webgpu } from './suites/webgpu.ts'

export type { Options } from './session.ts'

const SUITES: Readonly<Record<string, (s: Session) => Promise<void>>> = {
  'cora-graph': coraGraph,
  spmm: overMatrices(products),
  sddmm: overMatrices(samples),
  spmv,
  softmax,
  'block-sparse': blockSparse,
  'sampled-blocks': sampledBlocks,
  ...Object.fromEntries(GROUPED.map((g) => [g.suite, overGroups(g)])),
  'expert-layer': expertLayers,
  'tile-wise': tileWise,
  dynamic,
  'dynamic-building': dynamicBuilding,
  'rectified-layer': rectifiedLayers,
  'masked-training': maskedTraining,
  'dynamic-attention': dynamicAttention,
  'ragged-attention': raggedAttention,
  gemm,
  webgpu,
}

/** What suites take of what `--matrices` names. */
const TAKES: Readonly<Record<string, readonly DataKind[]>> = {
  ...Object.fromEntries(
    ['cora-graph', 'spmm', 'sddmm', 'spmv', 'softmax', 'webgpu'].map(
      (suite) => [suite, ['matrices']] as const,
    ),
  ),
  'block-sparse': ['blocks'],
  'tile-wise': ['layers'],
  'expert-layer': ['experts'],
  dynamic: ['tiles', 'shapes'],
  gemm: ['shapes'],
  'dynamic-building': ['tiles', 'elements'],
  'rectified-layer': ['tiles', 'elements'],
  ...Object.fromEntries(GROUPED.map((g) => [g.suite, [g.kind]] as const)),
}

/** Options that only some suites have. */
export const TAKEN_BY: Readonly<Record<'sparsities' | 'device' | 'break-even', readonly string[]>> = {
  sparsities: ['tile-wise', 'dynamic', 'rectified-layer', 'masked-training'],
  device: ['tile-wise', 'dynamic', 'dynamic-building'],
  'break-even': ['tile-wise'],
}

/** Names that can be asked for, in the order in which they run. */
export const suiteNames = (): readonly string[] => Object.keys(SUITES)

/**
 * Runs suites (all without names); whether everything ran and every result was right.
 * @throws SptError before anything is measured, where it could not be or its figures could not be written
 */
export async function bench(names: readonly string[], options: Options): Promise<boolean> {
  const suites = names.length > 0 ? names : suiteNames()
  await checkSchedules(options.schedules, suites, suiteNames())
  checkData(options.matrices, options.data, options.quick, suites, TAKES)
  if (options.json !== undefined) await checkWritable(options.json)
  const session = new Session(options, inherited())
  let complete = true
  let lost: DeviceLost | undefined
  try {
    for (const name of suites) {
      const suite = SUITES[name]
      if (!suite) throw new Error(`there is no suite ${name}: ${suiteNames().join(', ')}`)
      session.suite = name
      if (session.late()) {
        session.leave('')
        continue
      }
      try {
        // First of all: data of a suite take up to a minute to make.
        const isWeb = suite === webgpu || (TAKEN_BY.device.includes(name) && options.layers?.on === 'webgpu')
        await (isWeb ? session.webgpu() : session.cuda())
        await suite(session)
      } catch (error) {
        complete = false
        if (error instanceof DeviceLost) {
          lost = error
          break
        }
        session.say(`${name} ended early: ${messageOf(error)}`)
      }
    }
    if (lost && options.again && session.culprits.size < MOST_CULPRITS) {
      session.say(`${lost.culprit} ended the device: ${lost.message}; going on without it`)
      session.culprits.set(lost.culprit, `ended the device: ${lost.message}`)
      const state = await session.state()
      await session.close()
      return goOn(options.again, state) === 0
    }
    if (lost) session.say(`${lost.culprit} ended the device: ${lost.message}`)
    if (session.late()) {
      const rest = session.unmeasured.length > 0 ? `; not measured: ${session.unmeasured.join(', ')}` : ''
      session.say(`out of time after ${options.minutes} minutes${rest}`)
    }
    await print(session)
    await session.write()
  } finally {
    await session.close()
  }
  const wrong = session.cases.some((c) => c.entries.some((e) => e.side === 'ours' && e.result === 'wrong'))
  return complete && !wrong && session.culprits.size === 0 && session.cases.length > 0
}

async function print(s: Session): Promise<void> {
  const libraries = Object.entries(s.libraries).map(([name, version]) => `${name} ${version}`)
  if (s.cases.length === 0) return s.say('\nnothing was measured')
  s.say(`\n${[s.chip || 'no CUDA device', ...libraries].join(', ')}`)
  for (const suite of new Set(s.cases.map((c) => c.suite)))
    s.say(
      suiteText(
        suite,
        s.cases.filter((c) => c.suite === suite),
      ),
    )
  const preparations = await s.preparations()
  if (preparations.length > 0) s.say(preparationText(preparations))
  const building = buildingText(s.cases)
  if (building !== '') s.say(building)
}
