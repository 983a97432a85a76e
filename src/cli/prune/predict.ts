/** `--predict`: predicted times of a kernel for each layer, before and after pruning. */
import type { Kernel } from '../../api/kernels/kernel.ts'
import { parseScheduleCall } from '../../api/kernels/schedule-call.ts'
import { failWith, resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import type { Stmt } from '../../ir/statements/loops.ts'
import { someStmt } from '../../ir/statements/tree.ts'
import type { LayerReport, Mask, Pruned, PruneReport } from '../../prune.ts'
import { keptElements, unionMasks } from '../../prune.ts'
import { allAxesOf, callerTensors, isStructured } from '../../run/bind/bind-plan.ts'
import { checkSizesBeside } from '../../run/bind/sizes/bound-sizes.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import { costModel, predictor } from '../../search/ranking/cost-model.ts'
import type { Call, OptionSpec } from '../arguments/command.ts'
import { optionTable } from '../arguments/option-table.ts'
import { DEVICE, DEVICE_PROPERTIES, KERNEL, SCHEDULE, SIZE, TRUST } from '../arguments/options.ts'
import type { KernelRequest, ScheduledKernel } from '../scheduled-kernel.ts'
import { applySchedule, withKernel, withSourcesOf } from '../scheduled-kernel.ts'

const forPredict = (options: readonly OptionSpec[]): OptionSpec[] =>
  options.map((o) => ({ ...o, about: `With --predict: ${o.about}` }))

export const PREDICT_OPTIONS = optionTable`
  --predict <FILE>  [read]  Predict the time of a kernel of this program for each layer, before and after pruning
  ${forPredict([KERNEL])}  [with predict]
  ${SCHEDULE}  [with predict]  With --predict: its name, or gpu(8, 32) with arguments (default: auto, otherwise
      cpu on cpu and gpu on other devices)
  ${SIZE}  [with predict]  With --predict: a size of the kernel that layers do not have (m=12800)
  ${DEVICE}  [with predict]  With --predict: ${DEVICE.about}; a missing device is allowed
  ${forPredict(DEVICE_PROPERTIES)}  [with predict]
  ${forPredict(TRUST)}
`

/** Predicted milliseconds before and after pruning, and the reason if a time is missing. */
interface PredictedTimes {
  readonly before: number | null
  readonly after: number | null
  readonly reason: string | null
}

/** The report with predicted times; `null` for layers that are not pruned. */
export type PredictedReport = Omit<PruneReport, 'layers'> & {
  readonly prediction?: {
    readonly kernel: string
    readonly device: DeviceKind
    readonly chip: string | null
    /** Schedules chosen for at least one layer. */
    readonly schedules: readonly string[]
  }
  readonly layers: readonly (LayerReport & { readonly predicted?: PredictedTimes | null })[]
}

/** Loads the kernel of `--predict`, before layers are read. @throws UsageError, SptError of invalid programs and schedules */
export async function createPredictor(
  call: Call,
): Promise<((pruned: Pruned) => Promise<PredictedReport>) | null> {
  const path = call.one('predict')
  if (path === undefined) return null
  const kind = call.choice('device', DEVICE_KINDS) ?? 'cpu'
  const prepare = (request: KernelRequest): ((pruned: Pruned) => Promise<PredictedReport>) => {
    const { source: kernel, fixed, formatData, program } = request
    const selection = request.selectionInputs()
    const { params } = selection
    const weights = weightsName(kernel)
    checkSizesBeside(kernel.source, [weights], params)
    const setGranularity = granularitySetter(kernel, call.number('granularity'))
    const sets = [...formatData.keys()].filter((name) => formatData.get(name)?.kind === 'set')
    const schedules = new Set<string>()
    /** `tiles`: the mask's part stored in tiles, for formats that take a set. */
    const predictTime = async (
      layer: LayerReport,
      keptMask: Mask,
      tileMask: Mask,
    ): Promise<number | NoTime> => {
      const setElements = Object.fromEntries(sets.map((name) => [name, keptElements(tileMask, layer)]))
      const tensors = { [weights]: keptElements(keptMask, layer), ...setElements }
      try {
        const scheduled = setGranularity(fixed ?? (await request.select(kind, { ...selection, tensors })))
        if (usesInstructions(scheduled.kernel.compilation.loops.body))
          return {
            reason: `${scheduled.schedule} uses instructions (tensor cores, copies), which the cost model does not support`,
          }
        if (scheduled.schedule !== null) schedules.add(scheduled.schedule)
        const { milliseconds } = predictor(kernel, { device: kind, inputs: { tensors, params } })(
          scheduled.kernel,
        )
        return Number.isFinite(milliseconds) ? milliseconds : { reason: 'the cost model has no number' }
      } catch (error) {
        if (!(error instanceof SptError)) throw error
        const { code, message, hint } = error.diagnostics[0]!
        return INPUT_ERROR_CODES.test(code)
          ? { reason: hint ? `${message}: ${hint}` : message, inputError: error }
          : { reason: message }
      }
    }
    return async ({ masks, rest, report }) => {
      const dense = new Map<string, number | NoTime>()
      const times: (number | NoTime)[] = []
      const layers: (LayerReport & { predicted: PredictedTimes | null })[] = []
      for (const [k, layer] of report.layers.entries()) {
        if (layer.excluded) {
          layers.push({ ...layer, predicted: null })
          continue
        }
        call.io.progress?.(`predicting: ${k + 1} of ${report.layers.length}`)
        const key = `${layer.rows} ${layer.cols}`
        let before = dense.get(key)
        if (before === undefined) {
          const fullMask = new Uint8Array(layer.rows * layer.cols).fill(1)
          before = await predictTime(layer, fullMask, fullMask)
          dense.set(key, before)
        }
        const keptMask = unionMasks({ masks: [masks[k]!], ...(rest && { rest: [rest[k]!] }) })[0]!
        const after = await predictTime(layer, keptMask, masks[k]!)
        times.push(before, after)
        layers.push({ ...layer, predicted: predictedTimes(before, after) })
      }
      await withSourcesOf(program, () => rejectInputErrors(times))
      const chip = costModel(kind)?.chip ?? null
      return {
        ...report,
        layers,
        prediction: { kernel: kernel.name, device: kind, chip, schedules: [...schedules] },
      }
    }
  }
  return withKernel(call, kind, prepare, { path })
}

/** Schedule parameter for the number of outputs of a tile. */
const TILE = 'g'

/**
 * Sets a schedule's tile parameter to the granularity, if it has that parameter, accepts the value, and the user did not set
 * it.
 */
function granularitySetter(
  kernel: Kernel,
  granularity: number | undefined,
): (s: ScheduledKernel) => ScheduledKernel {
  const tiledBySchedule = new Map<string | null, ScheduledKernel>()
  return (untiled) => {
    const call = untiled.schedule === null ? null : parseScheduleCall(untiled.schedule)
    const index = call ? kernel.parameters(call.name).findIndex((p) => p.name === TILE) : -1
    if (
      granularity === undefined ||
      !call ||
      index < 0 ||
      call.args[index] !== undefined ||
      call.named?.has(TILE)
    )
      return untiled
    const cached = tiledBySchedule.get(untiled.schedule)
    if (cached) return cached
    const namedArgs = new Map([...(call.named ?? []), [TILE, granularity] as const])
    const tiled = resultOrError(() => applySchedule(kernel, { ...call, named: namedArgs }, undefined))
    // A schedule may be legal for some tile sizes only.
    const result = tiled instanceof SptError ? untiled : tiled
    tiledBySchedule.set(untiled.schedule, result)
    return result
  }
}

/** Reason for a missing time; `inputError`: caused by the arguments of the call, not by the layer. */
interface NoTime {
  readonly reason: string
  readonly inputError?: SptError
}

/** Codes of invalid sizes and unknown device properties. */
const INPUT_ERROR_CODES = /^(bind\/(size|missing)|choose\/unknown)-/

/** Throws if all layers fail because of the call's own arguments. */
function rejectInputErrors(times: readonly (number | NoTime)[]): void {
  const errors = times.flatMap((x) => (typeof x !== 'number' && x.inputError ? [x.inputError] : []))
  if (errors.length > 0 && errors.length === times.length) throw errors[0]!
}

function predictedTimes(before: number | NoTime, after: number | NoTime): PredictedTimes {
  const toTime = (x: number | NoTime): number | null => (typeof x === 'number' ? x : null)
  const reasons = [...new Set([before, after].flatMap((x) => (typeof x === 'number' ? [] : [x.reason])))]
  return {
    before: toTime(before),
    after: toTime(after),
    reason: reasons.length > 0 ? reasons.join('; ') : null,
  }
}

/** The name of the tensor that has layers. @throws SptError `prune/no-weights` */
function weightsName({ name, source }: Kernel): string {
  const axes = allAxesOf(source)
  const candidates = callerTensors(source).filter(
    (t) => t.first.role === 'in' && t.axes.length === 2 && t.axes.some((a) => isStructured(axes, a)),
  )
  if (candidates.length === 1) return candidates[0]!.name
  return failWith(
    'prune/no-weights',
    `kernel ${name} has ${candidates.length === 0 ? 'no sparse matrix' : `the sparse matrices ${candidates.map((t) => t.name).join(', ')}`} among its inputs`,
    { expected: 'one, for the weights of a layer', hint: 'choose another kernel with --kernel NAME' },
  )
}

const usesInstructions = (body: readonly Stmt[]): boolean =>
  someStmt(body, (s) => s.kind === 'for' && s.mode.kind === 'instr')
