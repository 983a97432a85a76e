/** Commands of a program for bound data: clears, launches with concrete grids, and graphs for replay. */

import { failAs } from '../../ast/diagnostics/diagnostic.ts'
import { physicalGrid } from '../../backends/grid-folding.ts'
import { failMaxRounds, MAX_ROUNDS } from '../../ir/coordinates/rounds.ts'
import { capacityCounts } from '../../ir/coordinates/runtime-lists.ts'
import { addBases, blocksOf, type Sizes, valueIn } from '../../plan/interpret.ts'
import type { LaunchPlan } from '../../plan/launch-plan.ts'
import type { PlanLaunch, PlanStep } from '../../plan/schema.ts'
import type { ArgValue, Command, Device, DeviceBuffer, Graph, Outcome } from '../../runtime/device.ts'
import { callerTensor, isRowMajor } from '../bind/bind-plan.ts'
import type { Bound } from '../bind/index.ts'
import type { Program } from '../compile/program.ts'
import { byteLength } from './buffer-layout.ts'

/** Commands that run `count` times; with `flag`, as long as its element is not 0. */
interface RunPart {
  readonly commands: readonly Command[]
  readonly count: number
  readonly flag?: DeviceBuffer | undefined
  readonly name: string
}

/** The commands of a run in parts: between rounds, and for each round. */
function partsOf(
  program: Program,
  bound: Bound,
  memory: ReadonlyMap<string, DeviceBuffer>,
): readonly RunPart[] {
  const { steps, rounds = [] } = program.plan
  const sizes = new Map(bound.params)
  const commands = (from: number, to: number, isFirst: boolean): readonly Command[] =>
    commandsOf(program, bound, memory, (_, k) => k >= from && k < to, isFirst)
  const parts: RunPart[] = []
  let at = 0
  for (const { name, from, to, count, while: flag } of rounds) {
    parts.push({ name, commands: commands(at, from, at === 0), count: 1 })
    parts.push({
      name,
      commands: commands(from, to, from === 0),
      count: count === undefined ? Infinity : Math.max(0, valueIn(count, sizes)!),
      flag: flag === undefined ? undefined : memory.get(flag)!,
    })
    at = to
  }
  return [...parts, { name: '', commands: commands(at, steps.length, at === 0), count: 1 }]
}

/** Most commands of a run that are recorded: the commands of more rounds are submitted round by round. */
const MOST_COMMANDS = 2 ** 16

/** A run as one list of commands; undefined if the number of commands is not known before the run, or too large. */
function flattened(parts: readonly RunPart[]): readonly Command[] | undefined {
  const total = parts.reduce((n, p) => n + (p.flag ? Infinity : p.count * p.commands.length), 0)
  if (total > MOST_COMMANDS) return undefined
  return parts.flatMap(({ commands, count }) =>
    Array.from({ length: commands.length && count }, () => commands).flat(),
  )
}

/** Runs parts on a device, with a read of the flag before each round. Throws SptError `run/max-rounds`, and like `Device.run`. */
export async function runParts(device: Device, parts: readonly RunPart[], most = MAX_ROUNDS): Promise<void> {
  for (const { commands, count, flag, name } of parts)
    for (let k = 0; k < count; k++) {
      if (flag) {
        const [more] = new Int32Array(await device.download(flag, 4))
        if (more === 0) break
        if (k >= most) failMaxRounds({ name }, most)
      }
      await device.run(commands)
    }
}

function commandsOf(
  { plan, device, modules }: Program,
  bound: Bound,
  memory: ReadonlyMap<string, DeviceBuffer>,
  wanted: (step: PlanStep, k: number) => boolean = () => true,
  isFirst = true,
): Command[] {
  const commands: Command[] = []
  const sizes = new Map(bound.params)
  addBases(plan.packed, sizes)
  for (const [k, step] of plan.steps.entries()) {
    if (!wanted(step, k)) continue
    if ('clear' in step) {
      const buffer = memory.get(step.clear)!
      if (buffer.bytes > 0) commands.push({ kind: 'clear', buffer })
      continue
    }
    const grid = gridOf(device, step, sizes)
    if (!grid) continue
    const args = step.args.map((a): ArgValue => {
      if ('buffer' in a) return memory.get(a.buffer)!
      if ('scalar' in a) return sizes.get(a.scalar)!
      return { memory: memory.get(a.of)!, rows: valueIn(a.rows, sizes)!, columns: valueIn(a.columns, sizes)! }
    })
    const { launch: entry } = step
    const module = modules.get(entry)!
    const { choice = '', grids } = step.when ?? {}
    const indirect = grids !== undefined && { indirect: { buffer: memory.get(choice)!, offset: 4 * grids } }
    const follows = !isFirst || commands.length > 0
    commands.push({ kind: 'launch', module, entry, grid, args, follows, ...indirect })
  }
  return commands
}

/** Buffers in which runs record lost writes and overflows until they are checked. */
export const reportedBuffers = (plan: Pick<LaunchPlan, 'runtimeLists' | 'lostWrites'>): ReadonlySet<string> =>
  new Set([...capacityCounts(plan), ...(plan.lostWrites ? [plan.lostWrites.buffer] : [])])

/** A complete run: its commands, or its parts if the commands are not known before the run. */
export interface Run {
  readonly commands?: readonly Command[] | undefined
  readonly parts: readonly RunPart[]
}

export const NO_RUN: Run = { commands: [], parts: [] }

export const failUnknownRounds = ({ kernel, rounds }: LaunchPlan): never =>
  failAs('run/rounds', {
    message: `the launches of ${kernel} are not recorded: the number of rounds of ${rounds?.map((r) => r.name).join(', ')} is known only at run time, or too large`,
    expected: `at most ${MOST_COMMANDS} launches, and rounds without a condition`,
    hint: 'measure with run() or `spt run --repeat`; to explain the kernel, give the rounds a fixed number, without `while`',
  })

/** If the run can fail, the last launch refers to the outcome. */
export function fullRun(
  program: Program,
  bound: Bound,
  memory: ReadonlyMap<string, DeviceBuffer>,
  outcome: Outcome,
): Run {
  const reports = reportedBuffers(program.plan).size > 0
  const parts = partsOf(program, bound, memory).map((p): RunPart => {
    const last = p.commands.findLastIndex((c) => c.kind === 'launch')
    const report = (c: Command, k: number): Command =>
      k === last && c.kind === 'launch' ? { ...c, outcome } : c
    return reports ? { ...p, commands: p.commands.map(report) } : p
  })
  return { commands: flattened(parts), parts }
}

/** The physical grid; undefined if the launch is empty. Throws SptError `plan/grid-too-large`. */
function gridOf(device: Device, launch: PlanLaunch, sizes: Sizes): [number, number, number] | undefined {
  const logical = blocksOf(launch, sizes)
  if (!logical) return undefined
  if (device.kind === 'cpu') return [1, 1, 1]
  const grid = physicalGrid(logical, device.limits.maxGridDim)
  if (!grid)
    failAs('plan/grid-too-large', {
      message: `${launch.launch} needs ${logical.reduce((a, b) => a * b)} blocks, more than one launch on ${device.name} can have`,
      expected: `at most ${device.limits.maxGridDim.slice(0, 2).join(' × ')} blocks`,
      hint: 'let each block do more: split the loops bound to block axes by a larger factor',
    })
  return grid
}

/**
 * The launches of a binding, recorded once (`runtime/device.ts`). The graph uses the memory of the binding, so `set`
 * provides new values for the next replay.
 * ```ts
 * const graph = await binding.graph()
 * await binding.set('B', values)
 * graph.launch()
 * await graph.finish()
 * const C = await binding.get('C')
 * ```
 */
export interface KernelGraph extends Graph {
  /**
   * Resolves when the queued work of the device has finished. Throws SptError like `Device.finish`: `run/lost-writes` if a write of the
   * latest replay found no element, `run/overflow`, `device/fault`.
   */
  finish(): Promise<void>
}

// Several plans of one kernel on the same data: shared memory, and the launches that compute run-time structure.

/** A program with its data in device memory. */
interface Loaded {
  readonly program: Program
  readonly bound: Bound
  readonly memory: ReadonlyMap<string, DeviceBuffer>
}

/** Device buffers of an executable that another program of the same kernel can share: tensors that both store as declared. */
export function commonBuffers(
  owner: Loaded & { readonly chained: ReadonlyMap<string, unknown> },
  { program, bound }: Omit<Loaded, 'memory'>,
): ReadonlyMap<string, DeviceBuffer> {
  const { device } = program
  const ownBuffers = new Map(owner.program.plan.buffers.map((b) => [b.name, b]))
  const asDeclared = (b: Bound, name: string): boolean => {
    const t = callerTensor(b.kernel, name)
    return t !== undefined && isRowMajor(t)
  }
  const out = new Map<string, DeviceBuffer>()
  for (const b of program.plan.buffers) {
    const same = ownBuffers.get(b.name)
    if (!same || same.role !== b.role || same.dtype !== b.dtype || owner.chained.has(b.name)) continue
    if (b.role === 'local' || b.role === 'index') continue
    if (!asDeclared(owner.bound, b.name) || !asDeclared(bound, b.name)) continue
    if (byteLength(device, same, owner.bound) !== byteLength(device, b, bound)) continue
    out.set(b.name, owner.memory.get(b.name)!)
  }
  return out
}

/**
 * Commands after which these buffers have the same contents as after a run. Empty if the commands would write more than temporaries, which
 * are private.
 */
export function commandsMeasuring(
  { program, bound, memory }: Loaded,
  buffers: readonly string[],
): readonly Command[] {
  const { plan } = program
  if (plan.rounds) return []
  const needed = new Set(buffers)
  const taken = new Set<PlanStep>()
  for (const step of plan.steps.toReversed()) {
    const writes = writtenBy(step)
    if (!writes.some((b) => needed.has(b))) continue
    taken.add(step)
    for (const b of [...writes, ...('clear' in step ? [] : step.reads)]) needed.add(b)
  }
  const written = [...taken].flatMap(writtenBy)
  const isOwn = plan.buffers.every((b) => b.role === 'local' || !written.includes(b.name))
  return isOwn ? commandsOf(program, bound, memory, (step) => taken.has(step)) : []
}

const writtenBy = (step: PlanStep): readonly string[] => ('clear' in step ? [step.clear] : step.writes)
