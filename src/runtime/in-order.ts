/** Streams and events of a device with a single queue, whose calls take effect in their order (`device.ts`). */

import { failAs, failWith } from '../ast/diagnostics/diagnostic.ts'
import { expectArgument, nameText } from '../ast/diagnostics/expect-argument.ts'
import type { Command, DeviceEvent, DeviceLimits, Graph, Stream } from './device.ts'
import { checkCommands, checkRepeats, expectLabel, expectStream } from './device-checks.ts'
import { ASYNC_DISPOSE, DISPOSE } from './dispose.ts'
import { Outcomes } from './outcomes.ts'

export interface InOrder {
  /** Resolves to nanoseconds on one clock when all queued work has finished. Called when an event is recorded. */
  now(): Promise<bigint>
  finish(): Promise<void>
}

class InOrderEvent implements DeviceEvent {
  #time: Promise<bigint> | undefined
  #freed = false

  constructor(readonly owner: InOrder) {}

  markRecorded(): void {
    if (this.#freed) failFreed('an event')
    this.#time = this.owner.now()
    // A failure is reported by the call that reads the time.
    this.#time.catch(() => {})
  }

  async since(earlier: DeviceEvent): Promise<number> {
    const start = checkEvent(earlier, this.owner).#time
    const end = this.#time
    if (!start || !end) failNotRecorded()
    return Number((await end) - (await start)) / 1e6
  }

  free(): void {
    this.#freed = true
    this.#time = undefined
  }

  [DISPOSE](): void {
    this.free()
  }
}

export class InOrderStream implements Stream {
  #freed = false

  constructor(
    readonly label: string,
    readonly owner: InOrder,
  ) {}

  /** Checks that the stream is not freed. @throws SptError `device/freed` */
  use(): void {
    if (this.#freed) failFreed(`the stream ${this.label}`)
  }

  record(event: DeviceEvent): void {
    this.use()
    checkEvent(event, this.owner).markRecorded()
  }

  wait(event: DeviceEvent): void {
    this.use()
    checkEvent(event, this.owner)
  }

  async finish(): Promise<void> {
    this.use()
    await this.owner.finish()
  }

  free(): void {
    this.#freed = true
  }

  [DISPOSE](): void {
    this.free()
  }
}

/** A recording of commands on a device with one queue. */
interface Recording {
  /** Throws if the device or objects of the graph are not live. */
  check(): void
  replay(): void
  /** As `Graph.time`. `use`: as `check`; also throws if the graph has been freed. */
  time(repeats: number, between: Graph | undefined, use: () => void): Promise<number[]>
  free(): void
}

/** Replays of recorded commands on a device with one queue. */
export function inOrderGraph(order: InOrder, recording: Recording): Graph {
  let isFreed = false
  const use = (): void => {
    if (isFreed) failFreed('the graph')
    recording.check()
  }
  const free = (): void => {
    if (!isFreed) recording.free()
    isFreed = true
  }
  return {
    launch(stream) {
      checkStream(stream, order)
      use()
      recording.replay()
    },
    async time(repeats, between) {
      checkRepeats(repeats, between)
      use()
      return recording.time(repeats, between, use)
    },
    free,
    [DISPOSE]: free,
  }
}

/** A device with one queue, whose streams and events need no driver. */
export abstract class InOrderDevice {
  abstract readonly limits: DeviceLimits
  protected readonly outcomes = new Outcomes()
  protected readonly order: InOrder = { now: () => this.now(), finish: () => this.finish() }
  /** The owner of its buffers and modules. */
  protected abstract readonly owner: object
  /** @throws SptError `device/disposed`, `device/lost` */
  protected abstract checkAlive(call: string): void
  protected abstract now(): Promise<bigint>
  /** Resolves when all queued work has finished. */
  protected abstract waitIdle(): Promise<void>
  abstract dispose(): Promise<void>

  [ASYNC_DISPOSE](): Promise<void> {
    return this.dispose()
  }

  stream(label: string, handle?: bigint): Stream {
    expectLabel(label, 'a stream')
    expectArgument(
      handle === undefined,
      'the handle of a stream',
      handle,
      'none: only cuda has streams of its own',
    )
    this.checkAlive(`stream ${label}`)
    return new InOrderStream(label, this.order)
  }

  event(): DeviceEvent {
    this.checkAlive('event')
    return new InOrderEvent(this.order)
  }

  async finish(): Promise<void> {
    this.checkAlive('finish')
    await this.waitIdle()
    await this.outcomes.settle()
  }

  /** @throws SptError as `checkAlive` and `checkCommands` */
  protected check(commands: readonly Command[], call: string): void {
    this.checkAlive(call)
    checkCommands(commands, this.limits, this.owner)
  }
}

/** True for a stream of any device, as opposed to an encoder. */
export const isStream = (into: object): into is Stream => 'record' in into && 'wait' in into

/** Checks that a replay can be queued on a stream. @throws SptError `device/foreign`, `device/freed` */
export function checkStream(stream: Stream | undefined, owner: InOrder): void {
  if (stream === undefined) return
  expectStream(stream)
  if (!(stream instanceof InOrderStream) || stream.owner !== owner)
    failForeign(`the stream ${nameText(stream.label)}`)
  stream.use()
}

function checkEvent(event: DeviceEvent, owner: InOrder): InOrderEvent {
  if (!(event instanceof InOrderEvent) || event.owner !== owner) failForeign('the event')
  return event
}

export function failFreed(subject: string): never {
  return failWith('device/freed', `${subject} has been freed`, {
    hint: 'free streams, events and graphs only after their last use',
  })
}

export function failForeign(subject: string): never {
  return failWith('device/foreign', `${subject} belongs to another device`, {
    expected: 'one of this device',
  })
}

export function failNotRecorded(): never {
  return failAs('device/not-recorded', {
    message: 'there is no time between two events of which one was never recorded',
    hint: 'record both on a stream first',
  })
}
