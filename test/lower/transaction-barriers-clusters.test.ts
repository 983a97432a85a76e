/**
 * Clusters of blocks whose pipelines copy by instructions of two kinds, of which one copies nothing that all blocks need:
 * who is told that a stage is free waits for it.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compileExpr, type Frame } from '../../src/interpret/thread-code.ts'
import type { InstrCall } from '../../src/ir/instructions/instr-call.ts'
import { Device } from '../support/asynchronous.ts'
import { runs } from '../support/cases.ts'
import { expectOn, inputsOf, type Steps, scheduled } from './tma-products.ts'

/** What blocks say on a barrier of one of them, and what its threads wait for there. */
interface Talk {
  releases: number
  /** By thread: phases, and the parity of the latest. */
  readonly waits: Map<number, { phases: number; parity: number }>
}

/**
 * A device that remembers what is said on barriers of which block. One that nobody waits for may be arrived at when its
 * block has ended, and its memory is another's.
 */
class Listening extends Device {
  readonly #talks = new Map<string, Talk>()

  override begin(call: InstrCall, f: Frame): () => boolean {
    const pieces = call.texts[0]!.pieces
    const text = pieces.filter((p) => typeof p === 'string').join('')
    const [at] = pieces.filter((p) => typeof p !== 'string' && p.kind === 'shared')
    const [value] = pieces.flatMap((p) =>
      typeof p !== 'string' && p.kind === 'value' ? [compileExpr(p.value)(f)] : [],
    )
    if (typeof at === 'object' && at.kind === 'shared' && value !== undefined) {
      const talk = (block: number): Talk => {
        const place = `${at.buffer}[${at.index.map((e) => compileExpr(e)(f))}] of ${block}`
        const known = this.#talks.get(place) ?? { releases: 0, waits: new Map() }
        this.#talks.set(place, known)
        return known
      }
      if (text.startsWith('release')) talk(f.cluster[value]!.state.block).releases++
      if (text.startsWith('arrived')) {
        const { waits } = talk(f.state.block)
        const own = waits.get(f.state.thread) ?? { phases: 0, parity: 1 }
        if (own.parity !== value) waits.set(f.state.thread, { phases: own.phases + 1, parity: value })
      }
    }
    return super.begin(call, f)
  }

  /** By name of barriers that blocks of a cluster release: how many phases they end, and how many are waited for. */
  heard(cluster: number): ReadonlyMap<string, { readonly ended: number; readonly awaited: number }> {
    const released = [...this.#talks].filter(([, t]) => t.releases > 0)
    return new Map(
      released.map(([place, t]) => [
        place,
        { ended: t.releases / cluster, awaited: Math.max(0, ...[...t.waits.values()].map((w) => w.phases)) },
      ]),
    )
  }
}

const twoKinds = fc.record<Steps>({
  kernel: fc.constantFrom('product', 'blocks'),
  a: fc.constant('bulk'),
  b: fc.constant('single'),
  ordered: fc.boolean(),
  again: fc.boolean(),
  stages: fc.integer({ min: 2, max: 4 }),
  cluster: fc.constantFrom(2, 4),
})

test('blocks release only multicast stages, and the copying block waits for each of them', () => {
  fc.assert(
    fc.property(
      twoKinds,
      fc.boolean(),
      fc.integer({ min: 1, max: 3 }),
      fc.nat(9),
      fc.nat(1000),
      (made, turned, rows, rounds, seed) => {
        const steps: Steps = turned ? { ...made, a: 'single', b: 'bulk' } : made
        const { inputs, C } = inputsOf(made.kernel, rows, rounds, seed, 32)
        const device = new Listening(seed)
        expectOn(device, scheduled(steps), inputs, C)
        const heard = device.heard(steps.cluster!)
        for (const [place, { ended, awaited }] of heard) expect(awaited, `phases of ${place}`).toBe(ended)
        // Stages are released from the round on that uses one again.
        const most = made.kernel === 'product' && !made.again ? rounds : undefined
        if (most !== undefined) expect(heard.size > 0).toBe(most > made.stages)
      },
    ),
    { numRuns: runs(8) },
  )
})
