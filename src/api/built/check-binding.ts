/** Checks of calls on compiled kernels, and of queued calls on bindings. */
import { failAs, failWith } from '../../ast/diagnostics/diagnostic.ts'
import { expectFields, FLAG, FUNCTION, SIGNAL } from '../../ast/diagnostics/value-kinds.ts'
import type { Coroutine, WorkOptions } from '../../ast/work.ts'
import { WORK_OPTIONS } from '../../ast/work.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { RefOptions, RefOutputs } from '../../reference/index.ts'
import { callerTensors } from '../../run/bind/bind-plan.ts'
import { type Bound, bindingSteps } from '../../run/bind/index.ts'
import { bindParams } from '../../run/bind/sizes/bound-sizes.ts'
import { checkFits } from '../../run/execution/buffer-layout.ts'
import type { Executable } from '../../run/execution/execute.ts'
import type { ExplainOptions } from '../../run/explain/index.ts'
import type { Device } from '../../runtime/device.ts'
import { expectArgument, expectOptions, isRecord, nameText } from '../inputs/argument-checks.ts'
import { type RunInputs, valuesIn } from '../inputs/bound-inputs.ts'

type Planned = Parameters<typeof checkFits>[0]

/** Bytes of the buffers of a plan, computed from sizes. Throws SptError `bind/…`, and as `checkFits`. */
export const fittingBytes = (on: Planned, kernel: Kernel1, values: ReturnType<typeof valuesIn>): number =>
  checkFits(on, sizesOf(kernel, values))

const sizesOf = (kernel: Kernel1, { tensors, params }: ReturnType<typeof valuesIn>): Map<string, number> =>
  bindParams(kernel, new Map(Object.entries(tensors)), new Map(Object.entries(params)))

/** Binds inputs whose buffers fit the plan (`null`: unknown). Throws SptError `bind/…`, `format/…`, and as `checkFits`. */
export function* bindWithin(on: Planned | null, kernel: Kernel1, inputs: RunInputs): Coroutine<Bound> {
  const values = valuesIn(kernel, inputs)
  const params = sizesOf(kernel, values)
  if (on) checkFits(on, params)
  return yield* bindingSteps(kernel, values, { params })
}

/** Throws SptError `api/unknown-buffer` unless the kernel has this buffer. */
export function expectBuffer(kernel: Kernel1, name: string): void {
  const candidates = callerTensors(kernel).map((t) => t.name)
  if (candidates.includes(name)) return
  failWith('api/unknown-buffer', `kernel ${kernel.name} has no buffer ${nameText(name)}`, {
    lookup: { name: nameText(name), candidates },
    expected: `one of ${candidates.join(', ')}`,
  })
}

/** Throws SptError `run/resident` if a tensor was converted on the device: only conversion on the host makes a format report. */
export function checkReported({ residents: [name] }: Executable): void {
  if (name !== undefined)
    failAs('run/resident', {
      message: `${name} was converted on the device, and formats are reported only for tensors on the host`,
      expected: 'a kernel with tensors bound only from the host',
      hint: `describe the tensor on the host: program.format(…).describe(tensor)`,
    })
}

/** Throws SptError `run/resident` if an input is on the old device, and `run/other-device` for another kind of device. */
export function checkRebuildable({ residents, chained, program }: Executable, device: Device): void {
  const [name] = [...residents, ...chained.keys()]
  if (name !== undefined)
    failAs('run/resident', {
      message: `${name} was resident on the device that the kernel was bound on, so the host has no copy`,
      expected: 'a kernel with tensors bound only from the host',
      hint: 'rebuild the kernel that computes the tensor, or upload new values, and bind the result to this kernel',
    })
  if (device.kind !== program.device.kind)
    failAs('run/other-device', {
      message: `kernel ${program.plan.kernel} was bound on ${program.device.kind}, and this device is ${device.kind}`,
      expected: `a ${program.device.kind} device`,
      hint: 'build the kernel for the other kind: kernel.build(device)',
    })
}

/** Throws SptError `run/resident` if the tensor is resident, and so cannot be written from the host. */
export function checkWritable({ residents, chained }: Executable, name: string): void {
  const from = chained.get(name)
  if (!from && !residents.includes(name)) return
  failAs('run/resident', {
    message: `${name} is resident: its memory is ${from ? `that of ${from.origin}` : "the caller's, and may be bound to other kernels"}`,
    expected: `a tensor that was bound from the host`,
    hint: from
      ? 'write the inputs of the kernel that computes the tensor, and run that kernel'
      : 'upload the new values to the device (resident, convertForKernel), and bind them (bindResident)',
  })
}

/** Throws SptError `api/argument` or `api/unknown-option` for invalid options. */
export const checkExplain = (options: ExplainOptions & WorkOptions): void =>
  expectFields('explain', options, { time: FLAG, signal: SIGNAL, onProgress: FUNCTION })

/** Throws SptError `api/argument` unless the argument has results of the reference for the kernel. */
export function checkExpected(kernel: Kernel1, expected: RefOutputs): void {
  const how = 'results of the reference: workspace.referenceResults(…)'
  const isResults = isRecord(expected) && isRecord(expected.buffers)
  expectArgument(isResults, 'the expected results', expected, how)
  for (const { name, first } of callerTensors(kernel))
    if (first.role === 'out' || first.role === 'inout')
      expectArgument(
        isRecord(expected.buffers[name]),
        `the expected result ${name}`,
        expected.buffers[name],
        how,
      )
}

/**
 * Checks the options of `verify`; an empty sample would pass without comparing anything. Throws SptError `api/argument`,
 * `api/unknown-option`.
 */
export function checkVerify(options: RefOptions & WorkOptions): void {
  expectOptions('verify', options, ['sample', ...WORK_OPTIONS])
  const { sample } = options
  if (sample === undefined) return
  expectOptions('the sample', sample, ['fraction', 'count', 'seed'])
  const { fraction, count, seed } = sample
  if ((fraction === undefined) === (count === undefined))
    failAs('api/argument', {
      message: `a sample has ${count === undefined ? 'neither a count nor a fraction' : 'a count and a fraction'}`,
      expected: 'a count or a fraction: { count: 100 } or { fraction: 0.1 }',
    })
  const isPart = fraction === undefined || (typeof fraction === 'number' && fraction > 0 && fraction <= 1)
  expectArgument(isPart, 'the fraction of a sample', fraction, 'a number above 0, and at most 1')
  const isCount = count === undefined || (Number.isSafeInteger(count) && count >= 1)
  expectArgument(isCount, 'the count of a sample', count, 'an integer from 1 on')
  const isSeed = seed === undefined || Number.isSafeInteger(seed)
  expectArgument(isSeed, 'the seed of a sample', seed, 'an integer, or none for 0')
}
