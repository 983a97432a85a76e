/** Argument checks shared by the calls of all devices. */

import { fail } from '../ast/diagnostics/diagnostic.ts'
import { expectArgument, isRecord, show } from '../ast/diagnostics/expect-argument.ts'
import type { Command, DeviceBuffer, Graph, HostArray, ModuleText, Stream } from './device.ts'

/** Maximum number of runs that one call times. */
export const MAX_RUNS = 1_000_000

/** @throws SptError `device/arguments` */
export function checkRepeats(repeats: number, between?: Graph, min = 0): void {
  if (!Number.isSafeInteger(repeats) || repeats < min || repeats > MAX_RUNS)
    fail({
      code: 'device/arguments',
      message: `cannot time ${show(repeats)} repeats`,
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
    'what is run',
    commands,
    'a list of commands',
    'prepared.commands has those of a kernel',
  )
}

export function expectBuffer(buffer: DeviceBuffer, call: string): void {
  expectArgument(isRecord(buffer), `the buffer of ${call}`, buffer, 'what alloc gives')
}

export function expectData(data: HostArray): void {
  expectArgument(ArrayBuffer.isView(data), 'what is uploaded', data, 'a typed array')
}

export function expectModule(module: ModuleText): void {
  expectArgument(
    isRecord(module) && typeof module.text === 'string' && Array.isArray(module.entries),
    'what is compiled',
    module,
    'one of the texts that emit gives',
  )
}

export function expectStream(stream: Stream): void {
  expectArgument(isRecord(stream), 'the stream', stream, 'what device.stream gives, or none')
}
