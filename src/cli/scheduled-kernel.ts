/** Loads programs for commands, selects the kernel, and applies the requested or selected schedule. */

import { basename } from 'node:path'
import { plainReason } from '../api/auto-schedule/software-adapter-schedule.ts'
import type { SelectionContext, SelectionInputs } from '../api/dispatch/device-facts.ts'
import { checkFeatures } from '../api/dispatch/device-facts.ts'
import type { Selection } from '../api/dispatch/dispatch-conditions.ts'
import { type BoundValues, isDeclared, sizesOf } from '../api/inputs/bound-inputs.ts'
import { flatInputs } from '../api/inputs/flat-inputs.ts'
import type { DeclaredInputs } from '../api/inputs/format-input-binding.ts'
import type { Kernel } from '../api/kernels/kernel.ts'
import { argumentsOf, type ScheduleCall } from '../api/kernels/schedule-call.ts'
import { verifierFor } from '../api/programs/lazy-verifier.ts'
import { readParsed, SptProgram } from '../api/programs/program.ts'
import { type Diagnostic, failWith, SptError, withSources } from '../ast/diagnostics/diagnostic.ts'
import { escapeText } from '../ast/diagnostics/render.ts'
import type { Program } from '../ast/imports/linked-program.ts'
import { readProgramText, rootedIn, shippedText } from '../io/package/program-text.ts'
import { programTrees } from '../io/package/program-trees.ts'
import type { Kernel1 } from '../ir/coordinates/stage1.ts'
import { isRefusedByDevice } from '../run/compile/device-limits.ts'
import type { Device, DeviceKind } from '../runtime/device.ts'
import type { Tensor } from '../storage/tensor.ts'
import type { Call } from './arguments/command.ts'
import { deviceProperty } from './arguments/options.ts'
import { checkSources } from './arguments/paths.ts'
import { scheduleCall } from './arguments/schedule-call.ts'
import {
  checkNames,
  declaredFiles,
  readInputs,
  readRemaining,
  sizeOptions,
  suggestSchedules,
} from './run/bind-options.ts'

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
    if (e instanceof SptError && e.code !== 'api/unknown-kernel') throw e
  }
  return failWith('run/no-kernel', `'${path}' declares no kernel and imports none`, {
    hint: 'to list the declarations of a program: spt check FILE',
  })
}

export interface ScheduledKernel {
  readonly kernel: Kernel
  readonly schedule: string | null
  /** Explanation of the selection, if the schedule was selected automatically. */
  readonly selection: Selection | null
  /** The default schedule if it is illegal here, and the reason. */
  readonly rejectedDefault?: { readonly name: string; readonly error: SptError } | undefined
}

const unscheduled = (
  kernel: Kernel,
  rejectedDefault?: ScheduledKernel['rejectedDefault'],
): ScheduledKernel => ({ kernel, schedule: null, selection: null, rejectedDefault })

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
      return unscheduled(kernel, { name: fallback, error })
    }
  return unscheduled(kernel)
}

/** Reports on standard error that the default schedule was rejected, with the reason. */
export function reportRejectedDefault(call: Call, { rejectedDefault }: ScheduledKernel): void {
  if (!rejectedDefault) return
  const [{ message, code }] = rejectedDefault.error.diagnostics as [Diagnostic]
  call.io.err(escapeText(`note: schedule ${rejectedDefault.name} is left out: ${message} (${code})\n`))
}

/** A kernel of a program, with the schedule that a call requests for a kind of device. */
export class KernelRequest {
  /** The unscheduled kernel. */
  readonly source: Kernel
  /** True if data, sizes or the device select the schedule. */
  readonly isSelected: boolean
  #fixed: ScheduledKernel | undefined

  constructor(
    readonly call: Call,
    readonly program: SptProgram,
    readonly kind: DeviceKind,
    readonly requested: ScheduleCall | undefined,
    { path, isSelecting }: { readonly path: string; readonly isSelecting: boolean },
  ) {
    this.source = selectKernel(program, call, path)
    this.isSelected = isSelecting && isDispatched(this.source, requested)
  }

  /** The scheduled kernel; `null` if the schedule is selected. */
  get fixed(): ScheduledKernel | null {
    if (this.isSelected) return null
    this.#fixed ??= applySchedule(this.source, this.requested, this.kind === 'cpu' ? 'cpu' : 'gpu')
    return this.#fixed
  }

  /** The kernel whose names are bound before a schedule is selected. */
  get bindable(): Kernel1 {
    return (this.fixed?.kernel ?? this.source).compilation.kernel
  }

  /** Lists and sets that the formats of the candidate schedules need. */
  get formatData(): DeclaredInputs {
    return this.source.formatInputs(this.requested?.name ?? 'auto')
  }

  /** Reads the files that are bound before a schedule is selected. @throws SptError as `checkNames`, `io/…` */
  async readEarly(
    files: ReadonlyMap<string, string>,
    sizes: ReadonlyMap<string, number>,
  ): Promise<Record<string, Tensor>> {
    const { bindable, source } = this
    const early = this.isSelected ? declaredFiles(source, files, this.formatData) : files
    await suggestSchedules(source, () => checkNames(bindable, early.keys(), sizes.keys()))
    return readInputs(bindable, early, sizes)
  }

  readRemaining(
    { kernel }: ScheduledKernel,
    files: ReadonlyMap<string, string>,
    tensors: Readonly<Record<string, Tensor>>,
    sizes: ReadonlyMap<string, number>,
  ): Promise<Record<string, Tensor>> {
    return suggestSchedules(this.source, () =>
      readRemaining(kernel.compilation.kernel, files, tensors, sizes, this.formatData),
    )
  }

  /** The kernel with the requested schedule or dispatch. */
  get dispatched(): Kernel {
    const { source, requested } = this
    return requested ? source.schedule(requested.name, ...argumentsOf(source, requested)) : source
  }

  /** The kernel under the schedule that the requested choice, or `auto`, selects. */
  async select(context: SelectionContext, inputs: SelectionInputs): Promise<ScheduledKernel> {
    const [values, options] = flatInputs(inputs)
    const { kernel, selection } = await this.dispatched.choose(context, values, {
      ...options,
      deterministic: this.call.flag('deterministic'),
    })
    return { kernel, schedule: selection.text, selection }
  }

  /**
   * The scheduled kernel for data. A software adapter may run `parallel()` instead of the default schedule
   * (`api/auto-schedule/software-adapter-schedule.ts`), unless the formats need bound data.
   */
  async schedule(
    device: Device | null,
    inputs: SelectionInputs & Pick<BoundValues, 'tensors' | 'params'>,
  ): Promise<ScheduledKernel> {
    const { fixed, source: kernel } = this
    if (!fixed) return this.select(device ?? this.kind, inputs)
    if (!device?.isSoftware || this.requested || fixed.schedule === null) return fixed
    const { tensors, params } = inputs
    const { source } = kernel.compilation
    const isPlain =
      Object.keys(tensors).every((name) => isDeclared(source, name, new Set())) &&
      plainReason(device, kernel, sizesOf(source, { tensors, params, resident: {} }), tensors) !== null
    return isPlain ? unscheduled(kernel) : fixed
  }

  /**
   * Applies `use` to the scheduled kernel, or to the unscheduled kernel if the device rejects a schedule that was not
   * requested.
   */
  async withFallback<T>(scheduled: ScheduledKernel, use: (s: ScheduledKernel) => Promise<T>): Promise<T> {
    try {
      return await use(scheduled)
    } catch (error) {
      const schedule = this.requested ? null : scheduled.schedule
      if (schedule === null || !isRefusedByDevice(error)) throw error
      const fallback = unscheduled(this.source, { name: schedule, error })
      reportRejectedDefault(this.call, fallback)
      return use(fallback)
    }
  }

  /** Inputs of automatic selection: sizes and statistics (`longest(j)=700`) of `--size`, and device properties. */
  selectionInputs(): SelectionInputs & { readonly params: Readonly<Record<string, number>> } {
    const { call, kind } = this
    const [capability] = deviceProperty(call, kind, 'capability').map(Number)
    const [processors] = deviceProperty(call, kind, 'processors').map(Number)
    const features = deviceProperty(call, kind, 'feature')
    if (features.length > 0) checkFeatures(features)
    const entries = [...sizeOptions(call)]
    const sizes = new Map(entries.filter(([name]) => !name.includes('(')))
    checkNames(this.source.compilation.source, [], sizes.keys())
    return {
      params: Object.fromEntries(sizes),
      statistics: Object.fromEntries(entries.filter(([name]) => name.includes('('))),
      capability,
      processors,
      features: features.length > 0 ? features : undefined,
    }
  }
}

/** True if the requested schedule (default: `auto`) dispatches on data. */
export const isDispatched = (kernel: Kernel, requested: ScheduleCall | undefined): boolean =>
  kernel.dispatches.includes(requested?.name ?? 'auto')

/** Loads a program and applies `work` to the kernel that the call names; errors show the sources of the program. */
export async function withKernel<T>(
  call: Call,
  kind: DeviceKind,
  work: (request: KernelRequest) => T | Promise<T>,
  { path = call.args[0]!, isSelecting = true } = {},
): Promise<T> {
  const requested = scheduleCall(call)
  const program = await loadFile(path, call)
  return withSourcesOf(program, () =>
    work(new KernelRequest(call, program, kind, requested, { path, isSelecting })),
  )
}
