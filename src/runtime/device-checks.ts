/**
 * Checks shared by all devices before they touch memory or launch, with identical codes and messages. Devices add only their
 * own sources of errors (the target compiler's log, the driver's faults).
 */
import { failAs, failWith } from '../ast/diagnostics/diagnostic.ts'
import { expectArgument, isRecord, show } from '../ast/diagnostics/expect-argument.ts'
import { type Dtype, INT_RANGE } from '../ir/values/dtype.ts'
import {
  type ArgSpec,
  type ArgValue,
  type Command,
  type CompiledModule,
  type DeviceBuffer,
  type DeviceLimits,
  type Entry,
  type Graph,
  type HostArray,
  isMatrix,
  type LaunchCommand,
  type ModuleText,
  memoryOf,
  type Stream,
} from './device.ts'

/** Devices that were disposed of or lost; their memory is gone, too. */
export const disposedDevices = new WeakSet<object>()

/** A buffer or module with the object that made it. */
export interface Owned {
  readonly owner: object
  /** True after `free()` or `release()`. */
  readonly freed: boolean
}

/** `foreign`: made by another device. */
type HandleState = 'live' | 'freed' | 'foreign'

function stateOf(handle: object, owner: object): HandleState {
  const own = handle as Partial<Owned>
  return own.owner !== owner ? 'foreign' : own.freed ? 'freed' : 'live'
}

/** Bytes, with their size in MiB if that is more readable. */
export const showBytes = (bytes: number): string =>
  bytes < 2 ** 20 ? `${bytes} bytes` : `${bytes} bytes (${(bytes / 2 ** 20).toFixed(1)} MiB)`

/** Checks that a buffer of this size can be allocated and bound. @throws SptError `device/buffer-too-large` */
export function checkAlloc(bytes: number, label: string, limits: DeviceLimits): void {
  expectArgument(
    Number.isInteger(bytes) && bytes >= 0,
    `the bytes of ${label}`,
    bytes,
    'an integer from 0 on',
  )
  const limit = Math.min(limits.maxBufferBytes, limits.maxBindingBytes, Number.MAX_SAFE_INTEGER)
  if (bytes <= limit) return
  const isArgument = limits.maxBindingBytes < limits.maxBufferBytes
  failAs('device/buffer-too-large', {
    message: `${label} needs ${showBytes(bytes)}; this device allows ${showBytes(limit)} in one ${isArgument ? 'kernel argument' : 'buffer'}`,
    expected: `at most ${limit} bytes`,
    hint: `use smaller sizes, or ${isArgument ? 'run on cpu or cuda, which allow larger arguments' : 'partition the tensor'}`,
  })
}

/** Checks that `bytes` bytes from `byteOffset` on are inside the buffer. @throws SptError `device/range` */
export function checkRange(buffer: DeviceBuffer, byteOffset: number, bytes: number, action: string): void {
  const areIntegers = Number.isSafeInteger(byteOffset) && Number.isSafeInteger(bytes)
  if (areIntegers && byteOffset >= 0 && bytes >= 0 && byteOffset + bytes <= buffer.bytes) return
  failAs('device/range', {
    message: `${action} ${show(bytes)} bytes at offset ${show(byteOffset)} does not fit ${buffer.label}, which has ${buffer.bytes} bytes`,
    expected: `offset + length <= ${buffer.bytes}`,
  })
}

export function failFreedBuffer({ label }: DeviceBuffer, call: string): never {
  return failWith('device/freed-buffer', `${call}: the buffer ${label} has been freed`, {
    hint: 'free buffers only after the last command that uses them',
  })
}

export function failForeignBuffer({ label }: DeviceBuffer, call: string): never {
  return failWith('device/foreign-buffer', `${call}: the buffer ${label} was allocated by another device`, {
    hint: 'download there and upload here',
  })
}

/** Checks a buffer; `call` is named in messages. @throws SptError `device/freed-buffer`, `device/foreign-buffer` */
export function checkBuffer(buffer: DeviceBuffer, owner: object, call: string): void {
  const state = stateOf(buffer, owner)
  if (state === 'freed') failFreedBuffer(buffer, call)
  if (state === 'foreign') failForeignBuffer(buffer, call)
}

/** Checks the target of a module. @throws SptError `device/target` */
export function checkTarget(module: ModuleText, target: ModuleText['target']): void {
  if (module.target !== target)
    failAs('device/target', {
      message: `the module ${module.name} is ${module.target} text; this device compiles ${target}`,
      hint: `emit it for the target ${target}`,
    })
}

/** Checks the block, the buffers and the shared memory of an entry. @throws SptError `device/over-limit` */
export function checkEntry(module: ModuleText, entry: Entry, limits: DeviceLimits): void {
  const reject = (clause: string, got: string, limit: string): never =>
    failAs('device/over-limit', {
      message: `the kernel ${entry.name} of ${module.name} ${clause} ${got}; this device allows ${limit}`,
      expected: `at most ${limit}`,
    })
  const threads = entry.block[0] * entry.block[1] * entry.block[2]
  if (threads > limits.maxThreadsPerBlock)
    reject('has', `${threads} threads a block (${entry.block.join(' × ')})`, `${limits.maxThreadsPerBlock}`)
  if (entry.block.some((n, k) => n > limits.maxBlockDim[k]!))
    reject('has blocks of', entry.block.join(' × '), limits.maxBlockDim.join(' × '))
  const buffers = entry.args.filter((a) => a.kind === 'buffer').length
  if (buffers > limits.maxBuffersPerLaunch)
    reject('takes', `${buffers} buffers`, `${limits.maxBuffersPerLaunch}`)
  if (entry.sharedBytes > limits.maxSharedBytes)
    reject('uses', `${entry.sharedBytes} bytes of shared memory`, `${limits.maxSharedBytes}`)
}

/** @throws SptError `device/released-module`, `device/foreign-module` */
export function checkModule(module: CompiledModule, owner: object): void {
  const state = stateOf(module, owner)
  if (state === 'live') return
  failAs(`device/${state === 'freed' ? 'released' : 'foreign'}-module`, {
    message: `the module ${module.text.name} ${state === 'freed' ? 'has been released' : 'was compiled by another device'}`,
    hint: 'compile its text on this device',
  })
}

const RANGES: Readonly<Partial<Record<Dtype, readonly [number, number]>>> = { ...INT_RANGE, bool: [0, 1] }

function checkScalar(kernel: string, spec: ArgSpec & { kind: 'scalar' }, value: number): void {
  const range = RANGES[spec.dtype]
  if (range && !(Number.isInteger(value) && value >= range[0] && value <= range[1]))
    failAs('device/arguments', {
      message: `${kernel}: ${value} is not a value of type ${spec.dtype} (argument ${spec.name})`,
      expected: `an integer from ${range[0]} to ${range[1]}`,
    })
}

const EXPECTED = {
  scalar: 'a number',
  buffer: 'a buffer from alloc',
  matrix: '{ memory, rows, columns }',
} as const

/** Checks number, kinds and values of arguments, and that buffers are live. `owner`: of the device's buffers. */
export function checkArgs(kernel: string, entry: Entry, args: readonly ArgValue[], owner: object): void {
  if (args.length !== entry.args.length)
    failWith('device/arguments', `${kernel} takes ${entry.args.length} arguments and got ${args.length}`, {
      expected: entry.args.map((a) => a.name).join(', '),
    })
  entry.args.forEach((spec, k) => {
    const value = args[k]!
    const kind = typeof value === 'number' ? 'scalar' : isMatrix(value) ? 'matrix' : 'buffer'
    if (kind !== spec.kind)
      failWith('device/arguments', `${kernel}: the argument ${spec.name} is a ${spec.kind}, not a ${kind}`, {
        expected: EXPECTED[spec.kind],
      })
    const memory = memoryOf(value)
    if (memory) checkBuffer(memory, owner, kernel)
    else if (spec.kind === 'scalar' && typeof value === 'number') checkScalar(kernel, spec, value)
  })
}

/**
 * Checks commands in order: entries exist, arguments fit their specs and are live, grids are within limits. `owner`: of the
 * device's buffers and modules. Codes: `device/unknown-entry`, `device/arguments`, `device/grid`, `device/released-module`,
 * `device/foreign-module`, and those of `checkBuffer`.
 */
export function checkCommands(commands: readonly Command[], limits: DeviceLimits, owner: object): void {
  for (const c of commands)
    if (c.kind === 'clear') checkBuffer(c.buffer, owner, 'clear')
    else {
      checkModule(c.module, owner)
      const entry = entryOf(c)
      checkGrid(c.entry, c.grid, limits)
      checkArgs(c.entry, entry, c.args, owner)
    }
}

export function entryOf({ module, entry: name }: LaunchCommand): Entry {
  const { entries } = module.text
  const entry = entries.find((e) => e.name === name)
  if (entry) return entry
  return failWith('device/unknown-entry', `the module ${module.text.name} has no kernel ${name}`, {
    lookup: { name, candidates: entries.map((e) => e.name) },
  })
}

export function checkGrid(
  kernel: string,
  grid: LaunchCommand['grid'],
  { maxGridDim }: Pick<DeviceLimits, 'maxGridDim'>,
): void {
  if (grid.every((n, k) => Number.isInteger(n) && n >= 1 && n <= maxGridDim[k]!)) return
  failWith('device/grid', `${kernel} cannot be launched on ${grid.join(' × ')} blocks`, {
    expected: `1 to ${maxGridDim.join(', ')} blocks in each dimension`,
  })
}

/** Throws the error of calls after `dispose()`. @throws SptError `device/disposed` */
export function failDisposed(device: string, call: string): never {
  return failWith('device/disposed', `${call}: the device ${device} has been disposed of`, {
    hint: 'make a new device',
  })
}

/** Maximum number of runs that one call times. */
export const MAX_RUNS = 1_000_000

/** @throws SptError `device/arguments` */
export function checkRepeats(repeats: number, between?: Graph, min = 0): void {
  if (!Number.isSafeInteger(repeats) || repeats < min || repeats > MAX_RUNS)
    failWith('device/arguments', `cannot time ${show(repeats)} repeats`, {
      expected: `a whole number from ${min} to ${MAX_RUNS}`,
    })
  const isGraph = between === undefined || (isRecord(between) && typeof between.launch === 'function')
  expectArgument(isGraph, 'what runs between', between, 'a graph')
}

/** Checks a label. This function and those below throw `api/argument`. */
export function expectLabel(label: string, subject: string): void {
  expectArgument(typeof label === 'string', `the label of ${subject}`, label, 'a string')
}

export function expectCommands(commands: readonly Command[]): void {
  const isCommand = (c: unknown): boolean =>
    isRecord(c) &&
    (c.kind === 'clear'
      ? isRecord(c.buffer)
      : c.kind === 'launch' &&
        isRecord(c.module) &&
        isRecord(c.module.text) &&
        typeof c.entry === 'string' &&
        Array.isArray(c.grid) &&
        Array.isArray(c.args))
  expectArgument(
    Array.isArray(commands) && commands.every(isCommand),
    'the list of commands',
    commands,
    'a list of commands',
    'binding.commands has those of a kernel',
  )
}

export function expectBuffer(buffer: DeviceBuffer, call: string): void {
  expectArgument(isRecord(buffer), `the buffer of ${call}`, buffer, 'a buffer from alloc')
}

export function expectData(data: HostArray): void {
  expectArgument(ArrayBuffer.isView(data), 'the uploaded data', data, 'a typed array')
}

export function expectModule(module: ModuleText): void {
  expectArgument(
    isRecord(module) && typeof module.text === 'string' && Array.isArray(module.entries),
    'the compiled module',
    module,
    'a module from kernel.emit',
  )
}

export function expectStream(stream: Stream): void {
  expectArgument(isRecord(stream), 'the stream', stream, 'a stream from device.stream, or none')
}
