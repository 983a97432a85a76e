/** Suites of dense products with our kernels on the CPU, and loops in the library's place. */
import { expect } from 'vitest'
import type { Case } from '../../bench/gpu/case.ts'
import { OurDevice, type OurRun } from '../../bench/gpu/ours.ts'
import type { Session } from '../../bench/gpu/session.ts'
import { devices } from '../../src/node.ts'
import { HostBlas } from './host-blas.ts'
import { HostStream } from './host-stream.ts'

function untimedRun(run: OurRun): OurRun {
  run.measure = async () => ({ event: 1, flushed: 1, backToBack: null, repeats: 1 })
  return run
}

/** Checks, and takes no time for measuring. */
class Untimed extends OurDevice {
  override async prepare(...args: Parameters<OurDevice['prepare']>): Promise<OurRun> {
    return untimedRun(await super.prepare(...args))
  }

  override async led(...args: Parameters<OurDevice['led']>): Promise<OurRun> {
    return untimedRun(await super.led(...args))
  }
}

/** The library's results are off by `factor`. */
export async function untimed(
  schedules: readonly string[],
  suite: (session: Session) => Promise<void>,
  factor = 1,
): Promise<readonly Case[]> {
  const stream = new HostStream()
  const device = new Untimed(await devices.cpu())
  const done: Case[] = []
  const session = {
    cuda: async () => device,
    webgpu: async () => device,
    stream: async () => stream,
    cublas: async () => new HostBlas(stream, factor),
    options: { schedules },
    cases: done,
    say: () => {},
    ceilings: undefined,
    culprits: new Map(),
    late: () => false,
    has: () => false,
    done: async (c: Case) => void done.push(c),
  } as unknown as Session
  await suite(session)
  expect(stream.live.size).toBe(0)
  await device.close()
  return done
}
