/** Programs for commands: read from files, with their errors complete. */
import { basename } from 'node:path'
import { type BoundValues, isDeclared, sizesOf } from '../api/bound-values.ts'
import type { Chosen } from '../api/choice-conditions.ts'
import type { ChoiceInputs, ChosenFor } from '../api/choose.ts'
import { checkFeatures } from '../api/choose-device.ts'
import type { Used } from '../api/format-data.ts'
import type { Kernel } from '../api/kernel.ts'
import { verifierFor } from '../api/lazy-verifier.ts'
import { plainReason } from '../api/plain-schedule.ts'
import { readParsed, SptProgram } from '../api/program.ts'
import { fail, SptError, withSources } from '../ast/diagnostic.ts'
import type { Program } from '../ast/linked-program.ts'
import { escaped } from '../ast/render.ts'
import { readProgramText, rootedIn, shippedText } from '../io/program-text.ts'
import { programTrees } from '../io/program-trees.ts'
import { isRefusedByDevice } from '../run/device-limits.ts'
import type { Device, DeviceKind } from '../runtime/device.ts'
import type { Call } from './command.ts'
import { checkSources } from './paths.ts'
import { checkNames, numbers } from './run/bind-options.ts'
import { argumentsOf, type ScheduleCall } from './schedule-call.ts'
import { misused } from './usage.ts'

/** Reads a program with its imports, as far as the call's options trust it. */
export async function loadFile(path: string, call: Call): Promise<SptProgram> {
  return programFrom(await parseFile(path, call), call)
}

/** The same in two steps: its text, and what that means. What options write is none of its files. */
export async function parseFile(path: string, call: Call): Promise<Program> {
  const root = call.one('import-root')
  const parsed = await readParsed(
    path,
    {
      files: readProgramText,
      imports: root === undefined ? readProgramText : await rootedIn(root),
      trees: programTrees(call.io.env),
      shipped: shippedText,
    },
    { instructions: !call.flag('no-instr') },
  )
  await checkSources(call, parsed)
  return parsed
}

/** `verify`: every stage is checked after each step and pass. */
export const programFrom = async (
  parsed: Program,
  call: Call,
  verify = verifies(call),
): Promise<SptProgram> =>
  new SptProgram(parsed, { instructions: !call.flag('no-instr'), observer: await verifierFor(verify) })

export const verifies = (call: Call): boolean => call.io.env.SPT_VERIFY === '1'

/** Gives errors the texts of the program, so that their spans are shown. */
export const within = <T>(program: SptProgram, work: () => T | Promise<T>): Promise<T> =>
  withSources(program, async () => work())

/** The kernel that `--kernel` names; without it the only one, or the one that is called like its file. */
export function chosenKernel(program: SptProgram, call: Call, path = call.args[0]!): Kernel {
  const kernelName = call.one('kernel')
  if (program.kernels.length === 0) refuseWithout(program, kernelName, path)
  const own = basename(path, '.spt').replaceAll('-', '_')
  return program.kernel(
    kernelName ?? (program.kernels.length > 1 && program.kernels.includes(own) ? own : undefined),
  )
}

/** Reports a missing kernel; names shared by kernels of several imported files count as missing. */
function refuseWithout(program: SptProgram, name: string | undefined, path: string): never {
  try {
    program.kernel(name)
  } catch (e) {
    if (e instanceof SptError && e.diagnostics[0]!.code !== 'api/unknown-kernel') throw e
  }
  return fail({
    code: 'run/no-kernel',
    message: `'${path}' declares no kernel and imports none`,
    hint: 'to list the declarations of a program: spt check FILE',
  })
}

/** A kernel under a schedule. */
export interface Scheduled {
  readonly kernel: Kernel
  readonly schedule: string | null
  /** Explanation by the choice, if one was made. */
  readonly chosen: Chosen | null
  /** The default schedule if it is illegal here, and the reason. */
  readonly passedOver?: { readonly name: string; readonly why: SptError } | undefined
}

/** The kernel under the requested schedule, otherwise under `fallback` if it exists and is legal, whose errors are dropped. */
export function scheduled(
  kernel: Kernel,
  requested: ScheduleCall | undefined,
  fallback: string | undefined,
): Scheduled {
  if (requested) {
    const named = [...(requested.named ?? [])].map(([n, v]) => `${n} = ${v}`)
    const args = [...requested.args, ...named].join(', ')
    return {
      kernel: kernel.schedule(requested.name, ...argumentsOf(kernel, requested)),
      schedule: args === '' ? requested.name : `${requested.name}(${args})`,
      chosen: null,
    }
  }
  if (fallback !== undefined && kernel.schedules.includes(fallback))
    try {
      return { kernel: kernel.schedule(fallback), schedule: fallback, chosen: null }
    } catch (why) {
      if (!isRefusedByDevice(why)) throw why
      return { kernel, schedule: null, chosen: null, passedOver: { name: fallback, why } }
    }
  return { kernel, schedule: null, chosen: null }
}

/** Says on standard error which schedule is not taken, and why. */
export function reportPassedOver(call: Call, { passedOver }: Scheduled): void {
  if (passedOver)
    call.io.err(
      escaped(
        `note: schedule ${passedOver.name} is left out: ${passedOver.why.diagnostics[0]!.message} (${passedOver.why.diagnostics[0]!.code})\n`,
      ),
    )
}

/**
 * Applies `use` to the kernel under its schedule. If the device rejects a schedule that was not requested, applies it to the
 * unscheduled kernel.
 */
export async function orWithout<T>(
  call: Call,
  decided: Scheduled,
  plain: Kernel,
  use: (s: Scheduled) => Promise<T>,
): Promise<T> {
  try {
    return await use(decided)
  } catch (why) {
    const taken = call.one('schedule') === undefined ? decided.schedule : null
    if (taken === null || !isRefusedByDevice(why)) throw why
    const without = { kernel: plain, schedule: null, chosen: null, passedOver: { name: taken, why } }
    reportPassedOver(call, without)
    return use(without)
  }
}

/** True if the requested schedule is a choice by data; without a request, if the kernel has a choice `auto`. */
export const isChosen = (kernel: Kernel, requested: ScheduleCall | undefined): boolean =>
  kernel.choices.includes(requested?.name ?? 'auto')

/**
 * The kernel without its default schedule where a software adapter runs `parallel()` instead (`api/plain-schedule.ts`): a schedule
 * called `gpu` falls under the rule for `auto`, unless the call names it or binds data that only its formats have.
 */
export function orPlain(
  scheduled: Scheduled,
  kernel: Kernel,
  requested: ScheduleCall | undefined,
  on: Device | null,
  { tensors, params }: Pick<BoundValues, 'tensors' | 'params'>,
): Scheduled {
  if (!on?.isSoftware || requested || scheduled.schedule === null) return scheduled
  const { source } = kernel.compilation
  const isPlain =
    Object.keys(tensors).every((name) => isDeclared(source, name, new Set())) &&
    plainReason(on, kernel, sizesOf(source, { tensors, params, resident: {} }), tensors) !== null
  return isPlain ? { kernel, schedule: null, chosen: null } : scheduled
}

/** Lists and sets required by the formats of the schedules that may run. */
export const usedFor = (kernel: Kernel, requested: ScheduleCall | undefined): Used =>
  kernel.usedData(requested?.name ?? 'auto')

/** The kernel under the schedule for a device, unless the schedule is chosen by data. */
export const scheduledFor = (
  kernel: Kernel,
  requested: ScheduleCall | undefined,
  kind: DeviceKind,
): Scheduled | null =>
  isChosen(kernel, requested) ? null : scheduled(kernel, requested, kind === 'cpu' ? 'cpu' : 'gpu')

/** The kernel under the schedule selected by the requested choice, or by `auto`. */
export async function chosen(
  kernel: Kernel,
  requested: ScheduleCall | undefined,
  on: ChosenFor,
  inputs: ChoiceInputs,
): Promise<Scheduled> {
  const open = requested ? kernel.schedule(requested.name, ...argumentsOf(kernel, requested)) : kernel
  const variant = await open.choose(on, inputs)
  return { kernel: variant.kernel, schedule: variant.chosen.text, chosen: variant.chosen }
}

/** Inputs of a choice: `--size` as sizes and as statistics (`longest(j)=700`), and the device. */
export function sizesFor(call: Call, kernel: Kernel, kind: DeviceKind): ChoiceInputs {
  const facts = {
    capability: capabilityFor(call, kind),
    processors: processorsFor(call, kind),
    features: featuresFor(call, kind),
  }
  const all = [...numbers(call)]
  const sizes = all.filter(([name]) => !name.includes('('))
  checkNames(
    kernel.compilation.source,
    [],
    sizes.map(([name]) => name),
  )
  return {
    params: Object.fromEntries(sizes),
    statistics: Object.fromEntries(all.filter(([name]) => name.includes('('))),
    ...facts,
  }
}

/**
 * Checks that inputs of a choice are given only if there is one. `sizes`: the command also uses `--bind`, and `--size`
 * without statistics.
 * @throws UsageError
 */
export function checkDeciding(call: Call, kernel: Kernel, sizes: boolean): void {
  const isUsed = (o: string, text: string): boolean =>
    sizes && (o === 'bind' || (o === 'size' && !text.slice(0, text.lastIndexOf('=')).includes('(')))
  const given = ['bind', 'size', 'capability', 'processors', 'feature'].flatMap((o) =>
    call
      .many(o)
      .filter((text) => !isUsed(o, text))
      .map((text) => `--${o} ${text}`),
  )
  const [first] = given
  if (first === undefined) return
  const [choice] = kernel.choices
  misused({
    command: call.command,
    message: `${first} decides nothing: the schedule of kernel ${kernel.name} is not chosen here`,
    expected: 'a schedule that is chosen by data, sizes, statistics or the device',
    hint:
      choice === undefined
        ? 'leave it out'
        : `leave it out, or name one that is chosen: --schedule ${choice}`,
  })
}

function capabilityFor(call: Call, kind: DeviceKind): number | undefined {
  const text = call.one('capability')
  if (text === undefined) return undefined
  if (!/^\d+\.\d$/.test(text))
    return misused({
      command: call.command,
      message: `--capability ${text} is not a compute capability`,
      expected: 'major and minor: --capability 9.0',
    })
  if (kind !== 'cuda')
    return misused({
      command: call.command,
      message: `--capability is of CUDA devices, and this is for ${kind}`,
      hint: `leave it out, or use ${call.command === 'emit' ? '--target' : '--device'} cuda`,
    })
  return Number(text)
}

function processorsFor(call: Call, kind: DeviceKind): number | undefined {
  const text = call.one('processors')
  if (text === undefined) return undefined
  if (!/^[1-9]\d{0,8}$/.test(text))
    return misused({
      command: call.command,
      message: `--processors ${text} is not a number of multiprocessors`,
      expected: 'an integer that is positive: --processors 132',
    })
  if (kind === 'cpu') return notOfCpu(call, '--processors')
  return Number(text)
}

function featuresFor(call: Call, kind: DeviceKind): readonly string[] | undefined {
  const features = call.many('feature')
  if (features.length === 0) return undefined
  const wrong = features.find((f) => !/^\s*[A-Za-z_]\w*\s*(\([^()]*\)\s*)?$/.test(f))
  if (wrong !== undefined)
    return misused({
      command: call.command,
      message: `--feature ${wrong} is not a feature`,
      expected: "a name, or a name with arguments: --feature 'subgroup_size(32)'",
    })
  if (kind === 'cpu') return notOfCpu(call, '--feature')
  checkFeatures(features)
  return features
}

const notOfCpu = (call: Call, option: string): never =>
  misused({
    command: call.command,
    message: `${option} is of GPUs, and this is for cpu`,
    hint: `leave it out, or use ${call.command === 'emit' ? '--target' : '--device'} cuda`,
  })
