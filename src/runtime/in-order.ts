/** Streams and events of a device with a single queue, whose calls take effect in their order (`device.ts`). */

import { fail } from '../ast/diagnostics/diagnostic.ts'
import { nameText } from '../ast/diagnostics/expect-argument.ts'
import type { DeviceEvent, Stream } from './device.ts'
import { expectStream } from './device-checks.ts'

/** Operations of the device that executes in-order streams. */
export interface InOrder {
  /** Resolves to nanoseconds on one clock when all queued work has finished. Called when an event is recorded. */
  now(): Promise<bigint>
  finish(): Promise<void>
}

export class InOrderEvent implements DeviceEvent {
  readonly owner: InOrder
  #time: Promise<bigint> | undefined
  #freed = false

  constructor(owner: InOrder) {
    this.owner = owner
  }

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
}

export class InOrderStream implements Stream {
  readonly label: string
  readonly owner: InOrder
  #freed = false

  constructor(label: string, owner: InOrder) {
    this.label = label
    this.owner = owner
  }

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
}

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
  return fail({
    code: 'device/freed',
    message: `${subject} has been freed`,
    hint: 'free streams, events and graphs only after their last use',
  })
}

export function failForeign(subject: string): never {
  return fail({
    code: 'device/foreign',
    message: `${subject} belongs to another device`,
    expected: 'one of this device',
  })
}

export function failNotRecorded(): never {
  return fail({
    code: 'device/not-recorded',
    message: 'there is no time between two events of which one was never recorded',
    hint: 'record both on a stream first',
  })
}
