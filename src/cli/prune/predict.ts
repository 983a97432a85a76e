/** `--predict`: predicted times of a kernel for each layer, before and after pruning. */
import type { RunInputs } from '../../api/bound-inputs.ts'
import type { Kernel } from '../../api/kernel.ts'
import { fail, orRefused, SptError } from '../../ast/diagnostic.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import type { Stmt } from '../../ir/loops.ts'
import { someStmt } from '../../ir/tree.ts'
import {
  keptElements,
  keptIn,
  type LayerReport,
  type Mask,
  type Pruned,
  type PruneReport,
} from '../../prune.ts'
import { checkSizesBeside } from '../../run/bind/bound-sizes.ts'
import { allAxesOf, callerTensors, isStructured } from '../../run/bind/caller-tensors.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import { costModel, predictor } from '../../search/cost-model.ts'
import type { Call, OptionSpec } from '../command.ts'
import { DEVICE, DEVICE_FACTS, KERNEL, SIZE, schedule, TRUST } from '../options.ts'
import { callIn, scheduleCall } from '../schedule-call.ts'
import {
  chosen,
  chosenKernel,
  loadFile,
  type Scheduled,
  scheduled,
  scheduledFor,
  sizesFor,
  usedFor,
  within,
} from '../scheduled-kernel.ts'
import { misused } from '../usage.ts'

const ofPredict = (o: OptionSpec): OptionSpec => ({ ...o, about: `With --predict: ${o.about}` })

const MORE: readonly OptionSpec[] = [
  KERNEL,
  schedule('its name, or gpu(8, 32) with arguments (default: auto, else cpu on cpu and gpu on the others)'),
  { ...SIZE, about: 'a size of the kernel that layers do not have (m=12800)' },
  { ...DEVICE, about: `${DEVICE.about}; a missing device is allowed` },
  ...DEVICE_FACTS,
].map(ofPredict)

export const PREDICT_OPTIONS: readonly OptionSpec[] = [
  {
    flags: '--predict <FILE>',
    about: 'Predict the time of a kernel of this program for each layer, before and after pruning',
    file: 'read',
  },
  ...MORE,
  ...TRUST.map(ofPredict),
]

/** Milliseconds, and why there are none. */
export interface Expected {
  readonly before: number | null
  readonly after: number | null
  readonly why: string | null
}

/** The report with predicted times; `null` for layers that are not pruned. */
export type PredictedReport = Omit<PruneReport, 'layers'> & {
  readonly predictedBy?: {
    readonly kernel: string
    readonly device: DeviceKind
    readonly chip: string | null
    /** Schedules chosen for at least one layer. */
    readonly schedules: readonly string[]
  }
  readonly layers: readonly (LayerReport & { readonly predicted?: Expected | null })[]
}

/** @throws UsageError, SptError of programs and schedules that are none: before layers are read */
export async function predicting(call: Call): Promise<((made: Pruned) => Promise<PredictedReport>) | null> {
  const path = call.one('predict')
  if (path === undefined) {
    const more = MORE.map((o) => /--([a-z-]+)/.exec(o.flags)![1]!).find((o) => call.flag(o))
    if (more !== undefined)
      misused({ command: call.command, message: `--${more} is of --predict`, expected: '--predict FILE' })
    return null
  }
  const kind = call.choice('device', DEVICE_KINDS) ?? 'cpu'
  const requested = scheduleCall(call)
  const program = await loadFile(path, call)
  return within(program, () => {
    const kernel = chosenKernel(program, call, path)
    const known = sizesFor(call, kernel, kind)
    const fixed = scheduledFor(kernel, requested, kind)
    const weights = weightsOf(kernel)
    checkSizesBeside(kernel.source, [weights], numbersIn(known.params))
    const used = usedFor(kernel, requested)
    const ofTiles = tilesOf(kernel, call.number('granularity'))
    const sets = [...used.keys()].filter((name) => used.get(name)?.kind === 'set')
    const taken = new Set<string>()
    /** `tiles`: the mask's part stored in tiles, for formats that take a set. */
    const expected = async (layer: LayerReport, kept: Mask, tiles: Mask): Promise<number | NoTime> => {
      const beside = Object.fromEntries(sets.map((name) => [name, keptElements(tiles, layer)]))
      const tensors = { [weights]: keptElements(kept, layer), ...beside }
      try {
        const { params = {} } = known
        const under = ofTiles(fixed ?? (await chosen(kernel, requested, kind, { ...known, tensors })))
        if (usesInstructions(under.kernel.compilation.loops.body))
          return {
            why: `${under.schedule} uses instructions (tensor cores, copies), whose times the cost model does not know`,
          }
        if (under.schedule !== null) taken.add(under.schedule)
        const { milliseconds } = predictor(kernel, { device: kind, inputs: { tensors, params } })(
          under.kernel,
        )
        return Number.isFinite(milliseconds) ? milliseconds : { why: 'the cost model has no number' }
      } catch (error) {
        if (!(error instanceof SptError)) throw error
        const { code, message, hint } = error.diagnostics[0]!
        return GIVEN.test(code)
          ? { why: hint ? `${message}: ${hint}` : message, given: error }
          : { why: message }
      }
    }
    return async ({ masks, rest, report }) => {
      const dense = new Map<string, number | NoTime>()
      const all: (number | NoTime)[] = []
      const layers: (LayerReport & { predicted: Expected | null })[] = []
      for (const [k, layer] of report.layers.entries()) {
        if (layer.excluded) {
          layers.push({ ...layer, predicted: null })
          continue
        }
        call.io.progress?.(`predicting: ${k + 1} of ${report.layers.length}`)
        const key = `${layer.rows} ${layer.cols}`
        let before = dense.get(key)
        if (before === undefined) {
          const whole = new Uint8Array(layer.rows * layer.cols).fill(1)
          before = await expected(layer, whole, whole)
          dense.set(key, before)
        }
        const kept = keptIn({ masks: [masks[k]!], ...(rest && { rest: [rest[k]!] }) })[0]!
        const after = await expected(layer, kept, masks[k]!)
        all.push(before, after)
        layers.push({ ...layer, predicted: expectedOf(before, after) })
      }
      await within(program, () => refuseGiven(all))
      const chip = costModel(kind)?.chip ?? null
      return {
        ...report,
        layers,
        predictedBy: { kernel: kernel.name, device: kind, chip, schedules: [...taken] },
      }
    }
  })
}

/** Schedule parameter for the number of outputs of a tile. */
const TILE = 'g'

/**
 * Sets a schedule's tile parameter to the granularity, if it has that parameter, accepts the value, and the user did not set
 * it.
 */
function tilesOf(kernel: Kernel, granularity: number | undefined): (s: Scheduled) => Scheduled {
  const made = new Map<string | null, Scheduled>()
  return (under) => {
    const call = under.schedule === null ? null : callIn(under.schedule)
    const at = call ? kernel.parameters(call.name).findIndex((p) => p.name === TILE) : -1
    if (granularity === undefined || !call || at < 0 || call.args[at] !== undefined || call.named?.has(TILE))
      return under
    const known = made.get(under.schedule)
    if (known) return known
    const named = new Map([...(call.named ?? []), [TILE, granularity] as const])
    const tiled = orRefused(() => scheduled(kernel, { ...call, named }, undefined))
    // Schedules may be for some sizes of tiles alone.
    const taken = tiled instanceof SptError ? under : tiled
    made.set(under.schedule, taken)
    return taken
  }
}

/** Reason for a missing time; `given`: an error of the call's arguments, not of the layer. */
interface NoTime {
  readonly why: string
  readonly given?: SptError
}

/** Codes of wrong sizes and of unknown device properties. */
const GIVEN = /^(bind\/(size|missing)|choose\/unknown)-/

/** Throws if all layers fail because of the call's own arguments. */
function refuseGiven(all: readonly (number | NoTime)[]): void {
  const wrong = all.flatMap((x) => (typeof x !== 'number' && x.given ? [x.given] : []))
  if (wrong.length > 0 && wrong.length === all.length) throw wrong[0]!
}

function expectedOf(before: number | NoTime, after: number | NoTime): Expected {
  const number = (x: number | NoTime): number | null => (typeof x === 'number' ? x : null)
  const whys = [...new Set([before, after].flatMap((x) => (typeof x === 'number' ? [] : [x.why])))]
  return { before: number(before), after: number(after), why: whys.length > 0 ? whys.join('; ') : null }
}

const numbersIn = (params: RunInputs['params'] = {}): Record<string, number> =>
  Object.fromEntries(Object.entries(params).map(([name, x]) => [name, Number(x)]))

/** The name of the tensor that has layers. @throws SptError `prune/no-weights` */
function weightsOf({ name, source }: Kernel): string {
  const axes = allAxesOf(source)
  const all = callerTensors(source).filter(
    (t) => t.first.role === 'in' && t.axes.length === 2 && t.axes.some((a) => isStructured(axes, a)),
  )
  if (all.length === 1) return all[0]!.name
  return fail({
    code: 'prune/no-weights',
    message: `kernel ${name} has ${all.length === 0 ? 'no sparse matrix' : `the sparse matrices ${all.map((t) => t.name).join(', ')}`} among its inputs`,
    expected: 'one, for the weights of a layer',
    hint: 'choose another kernel with --kernel NAME',
  })
}

const usesInstructions = (body: readonly Stmt[]): boolean =>
  someStmt(body, (s) => s.kind === 'for' && s.mode.kind === 'instr')
