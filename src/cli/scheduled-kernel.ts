/** Loads programs for commands, selects the kernel, and applies the requested or selected schedule. */
import { basename } from 'node:path'
import { plainReason } from '../api/auto-schedule/software-adapter-schedule.ts'
import type { Selection } from '../api/dispatch/dispatch-conditions.ts'
import type { SelectionContext, SelectionInputs } from '../api/dispatch/schedule-selection.ts'
import { checkFeatures } from '../api/dispatch/selection-context.ts'
import { type BoundValues, isDeclared, sizesOf } from '../api/inputs/bound-inputs.ts'
import type { DeclaredInputs } from '../api/inputs/format-input-binding.ts'
import type { Kernel } from '../api/kernels/kernel.ts'
import { verifierFor } from '../api/programs/lazy-verifier.ts'
import { readParsed, SptProgram } from '../api/programs/program.ts'
import { failWith, SptError, withSources } from '../ast/diagnostics/diagnostic.ts'
import { escapeText } from '../ast/diagnostics/render.ts'
import type { Program } from '../ast/imports/linked-program.ts'
import { readProgramText, rootedIn, shippedText } from '../io/package/program-text.ts'
import { programTrees } from '../io/package/program-trees.ts'
import { isRefusedByDevice } from '../run/compile/device-limits.ts'
import type { Device, DeviceKind } from '../runtime/device.ts'
import type { Call } from './arguments/command.ts'
import { checkSources } from './arguments/paths.ts'
import { argumentsOf, type ScheduleCall } from './arguments/schedule-call.ts'
import { checkNames, sizeOptions } from './run/bind-options.ts'

/** Reads and elaborates a program with its imports, under the trust options of the call. */
export async function loadFile(path: string, call: Call): Promise<SptProgram> {
  return programFrom(await parseFile(path, call), call)
}

/** Parses a program with its imports, and checks that no option overwrites its files. */
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

/** Elaborates a parsed program. @param verify - Check every stage after each step and pass */
export const programFrom = async (
  parsed: Program,
  call: Call,
  verify = isVerifying(call),
): Promise<SptProgram> =>
  new SptProgram(parsed, { instructions: !call.flag('no-instr'), observer: await verifierFor(verify) })

export const isVerifying = (call: Call): boolean => call.io.env.SPT_VERIFY === '1'

/** Adds the sources of the program to errors of `work`, so that spans are shown. */
export const withSourcesOf = <T>(program: SptProgram, work: () => T | Promise<T>): Promise<T> =>
  withSources(program, async () => work())

/** The kernel of `--kernel`; by default the only kernel, or the kernel named like the file. */
export function selectKernel(program: SptProgram, call: Call, path = call.args[0]!): Kernel {
  const kernelName = call.one('kernel')
  if (program.kernels.length === 0) rejectMissingKernel(program, kernelName, path)
  const fileKernel = basename(path, '.spt').replaceAll('-', '_')
  return program.kernel(
    kernelName ??
      (program.kernels.length > 1 && program.kernels.includes(fileKernel) ? fileKernel : undefined),
  )
}

/** Reports a missing kernel; names shared by kernels of several imported files count as missing. */
function rejectMissingKernel(program: SptProgram, name: string | undefined, path: string): never {
  try {
    program.kernel(name)
  } catch (e) {
    if (e instanceof SptError && e.diagnostics[0]!.code !== 'api/unknown-kernel') throw e
  }
  return failWith('run/no-kernel', `'${path}' declares no kernel and imports none`, {
    hint: 'to list the declarations of a program: spt check FILE',
  })
}

/** A kernel under a schedule. */
export interface ScheduledKernel {
  readonly kernel: Kernel
  readonly schedule: string | null
  /** Explanation of the selection, if the schedule was selected automatically. */
  readonly selection: Selection | null
  /** The default schedule if it is illegal here, and the reason. */
  readonly rejectedDefault?: { readonly name: string; readonly error: SptError } | undefined
}

/** The kernel under the requested schedule, otherwise under `fallback` if it exists and the device supports it. */
export function applySchedule(
  kernel: Kernel,
  requested: ScheduleCall | undefined,
  fallback: string | undefined,
): ScheduledKernel {
  if (requested) {
    const namedArgs = [...(requested.named ?? [])].map(([n, v]) => `${n} = ${v}`)
    const args = [...requested.args, ...namedArgs].join(', ')
    return {
      kernel: kernel.schedule(requested.name, ...argumentsOf(kernel, requested)),
      schedule: args === '' ? requested.name : `${requested.name}(${args})`,
      selection: null,
    }
  }
  if (fallback !== undefined && kernel.schedules.includes(fallback))
    try {
      return { kernel: kernel.schedule(fallback), schedule: fallback, selection: null }
    } catch (error) {
      if (!isRefusedByDevice(error)) throw error
      return { kernel, schedule: null, selection: null, rejectedDefault: { name: fallback, error } }
    }
  return { kernel, schedule: null, selection: null }
}

/** Reports on standard error that the default schedule was rejected, with the reason. */
export function reportRejectedDefault(call: Call, { rejectedDefault }: ScheduledKernel): void {
  if (rejectedDefault)
    call.io.err(
      escapeText(
        `note: schedule ${rejectedDefault.name} is left out: ${rejectedDefault.error.diagnostics[0]!.message} (${rejectedDefault.error.diagnostics[0]!.code})\n`,
      ),
    )
}

/**
 * Applies `use` to the kernel under its schedule. If the device rejects a schedule that was not requested, applies it to the
 * unscheduled kernel.
 */
export async function withFallback<T>(
  call: Call,
  scheduled: ScheduledKernel,
  unscheduled: Kernel,
  use: (s: ScheduledKernel) => Promise<T>,
): Promise<T> {
  try {
    return await use(scheduled)
  } catch (error) {
    const schedule = call.one('schedule') === undefined ? scheduled.schedule : null
    if (schedule === null || !isRefusedByDevice(error)) throw error
    const fallback = {
      kernel: unscheduled,
      schedule: null,
      selection: null,
      rejectedDefault: { name: schedule, error },
    }
    reportRejectedDefault(call, fallback)
    return use(fallback)
  }
}

/** True if the requested schedule (default: `auto`) dispatches on data. */
export const isDispatched = (kernel: Kernel, requested: ScheduleCall | undefined): boolean =>
  kernel.dispatches.includes(requested?.name ?? 'auto')

/**
 * Drops the default schedule if a software adapter runs `parallel()` instead (`api/plain-schedule.ts`). A requested schedule is
 * kept, as is a schedule whose formats need bound data.
 */
export function applySoftwareRule(
  fixed: ScheduledKernel,
  kernel: Kernel,
  requested: ScheduleCall | undefined,
  device: Device | null,
  { tensors, params }: Pick<BoundValues, 'tensors' | 'params'>,
): ScheduledKernel {
  if (!device?.isSoftware || requested || fixed.schedule === null) return fixed
  const { source } = kernel.compilation
  const isPlain =
    Object.keys(tensors).every((name) => isDeclared(source, name, new Set())) &&
    plainReason(device, kernel, sizesOf(source, { tensors, params, resident: {} }), tensors) !== null
  return isPlain ? { kernel, schedule: null, selection: null } : fixed
}

/** Lists and sets that the formats of the candidate schedules need. */
export const formatDataFor = (kernel: Kernel, requested: ScheduleCall | undefined): DeclaredInputs =>
  kernel.formatInputs(requested?.name ?? 'auto')

/** The kernel under the schedule for a device; `null` if the schedule is selected by data. */
export const fixedSchedule = (
  kernel: Kernel,
  requested: ScheduleCall | undefined,
  kind: DeviceKind,
): ScheduledKernel | null =>
  isDispatched(kernel, requested) ? null : applySchedule(kernel, requested, kind === 'cpu' ? 'cpu' : 'gpu')

/** The kernel under the schedule selected by the requested choice, or by `auto`. */
export async function selectSchedule(
  kernel: Kernel,
  requested: ScheduleCall | undefined,
  context: SelectionContext,
  inputs: SelectionInputs,
): Promise<ScheduledKernel> {
  const dispatch = requested ? kernel.schedule(requested.name, ...argumentsOf(kernel, requested)) : kernel
  const variant = await dispatch.choose(context, inputs)
  return { kernel: variant.kernel, schedule: variant.selection.text, selection: variant.selection }
}

/** Inputs of automatic selection: sizes and statistics (`longest(j)=700`) of `--size`, and device properties. */
export function selectionInputs(call: Call, kernel: Kernel, kind: DeviceKind): SelectionInputs {
  const [capability] = deviceProperty(call, kind, 'capability').map(Number)
  const [processors] = deviceProperty(call, kind, 'processors').map(Number)
  const features = deviceProperty(call, kind, 'feature')
  if (features.length > 0) checkFeatures(features)
  const entries = [...sizeOptions(call)]
  const sizes = new Map(entries.filter(([name]) => !name.includes('(')))
  checkNames(kernel.compilation.source, [], sizes.keys())
  return {
    params: Object.fromEntries(sizes),
    statistics: Object.fromEntries(entries.filter(([name]) => name.includes('('))),
    capability,
    processors,
    features: features.length > 0 ? features : undefined,
  }
}

/**
 * Rejects inputs of automatic selection if the schedule is fixed. `usesSizes`: the command also needs `--bind`, and `--size`
 * without statistics.
 * @throws UsageError
 */
export function checkSelectionInputs(call: Call, kernel: Kernel, usesSizes: boolean): void {
  const isUsed = (o: string, text: string): boolean =>
    usesSizes && (o === 'bind' || (o === 'size' && !text.slice(0, text.lastIndexOf('=')).includes('(')))
  const unused = ['bind', 'size', 'capability', 'processors', 'feature'].flatMap((o) =>
    call
      .many(o)
      .filter((text) => !isUsed(o, text))
      .map((text) => `--${o} ${text}`),
  )
  const [first] = unused
  if (first === undefined) return
  const [choice] = kernel.dispatches
  call.reject(
    `${first} has no effect: the schedule of kernel ${kernel.name} does not depend on data or the device`,
    {
      expected: 'a schedule that is chosen by data, sizes, statistics or the device',
      hint: choice === undefined ? `omit ${first}` : `omit ${first}, or select --schedule ${choice}`,
    },
  )
}

const PROPERTIES = {
  capability: {
    syntax: /^\d+\.\d$/,
    noun: 'a compute capability',
    expected: 'major and minor: --capability 9.0',
    devices: 'CUDA devices',
  },
  processors: {
    syntax: /^[1-9]\d{0,8}$/,
    noun: 'a number of multiprocessors',
    expected: 'an integer that is positive: --processors 132',
    devices: 'GPUs',
  },
  feature: {
    syntax: /^\s*[A-Za-z_]\w*\s*(\([^()]*\)\s*)?$/,
    noun: 'a feature',
    expected: "a name, or a name with arguments: --feature 'subgroup_size(32)'",
    devices: 'GPUs',
  },
}

/** The values of a device property, checked. @throws UsageError */
function deviceProperty(call: Call, kind: DeviceKind, name: keyof typeof PROPERTIES): readonly string[] {
  const { syntax, noun, expected, devices } = PROPERTIES[name]
  const values = call.many(name)
  const invalid = values.find((text) => !syntax.test(text))
  if (invalid !== undefined) call.reject(`--${name} ${invalid} is not ${noun}`, { expected })
  if (values.length > 0 && (kind === 'cpu' || (name === 'capability' && kind !== 'cuda')))
    call.reject(`--${name} is of ${devices}, and this is for ${kind}`, {
      hint: `omit --${name}, or use ${call.command === 'emit' ? '--target' : '--device'} cuda`,
    })
  return values
}
