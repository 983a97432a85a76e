/** One case: all contestants checked, looked at briefly, the best of each side measured. */
import type { MeasureOptions } from '../../src/runtime/measure.ts'
import { DeviceLost, isLoss } from './device-lost.ts'
import type { Verdict } from './expected.ts'
import { messageOf } from './ours.ts'
import { comparable, type Times } from './timing.ts'

/** `naive`: ours as one would first write it. */
export type Side = 'ours' | 'peer' | 'naive'

/** Who takes part; `enter` brings the data and runs once on poisoned outputs. */
export interface Contestant {
  readonly name: string
  readonly side: Side
  enter(): Promise<Running>
}

export interface Running {
  check(): Promise<Verdict>
  /** Microseconds of a few runs. */
  scout(): Promise<number>
  measure(scouted: number): Promise<Times>
  /** Microseconds of runs, one by one or the means of batches; of ours alone. */
  samples?(options: MeasureOptions): Promise<readonly number[]>
  free(): void
  /** Figures beside times: preprocessing, building a format, bytes. */
  readonly facts?: Readonly<Record<string, number | string>>
}

export interface Entry {
  readonly name: string
  readonly side: Side
  /** `wrong`: the result differs; `failed`: it did not run. */
  readonly result: 'ok' | 'wrong' | 'failed'
  readonly note: string
  readonly error: number | null
  readonly scouted: number | null
  readonly times: Times | null
  readonly facts?: Readonly<Record<string, number | string>>
}

export interface Case {
  readonly suite: string
  readonly data: string
  /** The varying size: `N = 32`, `5 %, N = 512`. */
  readonly at: string
  readonly entries: readonly Entry[]
  /** How results were checked. */
  readonly checked: string
  /** Microseconds that it takes at least, by the chip's ceilings. */
  readonly floor: number | null
  /** 2 · nonzeros · width, and what a case is called useful by. */
  readonly flops: number
  readonly standard: string | null
}

/** Of those on a side that were measured, the fastest. */
export function best(c: Case, side: Side): (Entry & { readonly times: Times }) | undefined {
  const measured = c.entries.filter(
    (e): e is Entry & { readonly times: Times } => e.side === side && e.times !== null,
  )
  return measured.sort((a, b) => a.times.event - b.times.event)[0]
}

export const standardOf = (c: Case): (Entry & { readonly times: Times }) | undefined =>
  c.entries.find(
    (e): e is Entry & { readonly times: Times } =>
      e.side === 'ours' && e.name === c.standard && e.times !== null,
  )

export interface Ratios {
  /** The best peer's time over ours: above 1 we are faster. */
  readonly best: number
  readonly flushed: number
  /** The same for the standard choice. */
  readonly standard: number | null
}

export function ratios(c: Case): Ratios | undefined {
  const [mine, peer] = [best(c, 'ours'), best(c, 'peer')]
  if (!mine || !peer) return undefined
  const ratio = (own: Times): number => {
    const [a, b] = comparable(own, peer.times)
    return b / a
  }
  const standard = standardOf(c)
  return {
    best: ratio(mine.times),
    flushed: peer.times.flushed / mine.times.flushed,
    standard: standard ? ratio(standard.times) : null,
  }
}

/** Those within this of the fastest when scouted are measured too. */
const CLOSE = 1.05

/** Whether the time is up, and who is left out because it ended a device before. */
export interface Referee {
  late(): boolean
  readonly culprits: ReadonlyMap<string, string>
}

/**
 * Everyone enters and is checked; those within `close` of the fastest of each side, and the standard choice, are measured.
 * @throws DeviceLost
 */
export async function compete(
  contestants: readonly Contestant[],
  standard: string | null,
  referee: Referee,
  close = CLOSE,
): Promise<readonly Entry[]> {
  const entries: Entry[] = []
  const running = new Map<number, Running>()
  try {
    for (const c of contestants) {
      const head = { name: c.name, side: c.side, error: null, scouted: null, times: null }
      const culprit = referee.culprits.get(c.name)
      if (culprit !== undefined || referee.late()) {
        entries.push({ ...head, result: 'failed', note: culprit ?? 'out of time' })
        continue
      }
      try {
        const r = await c.enter()
        running.set(entries.length, r)
        const facts = r.facts ? { facts: r.facts } : {}
        const verdict = await r.check()
        if (verdict.ok)
          entries.push({
            ...head,
            ...facts,
            result: 'ok',
            note: '',
            error: verdict.error,
            scouted: await r.scout(),
          })
        else entries.push({ ...head, ...facts, result: 'wrong', note: verdict.problem, error: verdict.error })
      } catch (error) {
        if (isLoss(error)) throw new DeviceLost(c.name, messageOf(error))
        entries.push({ ...head, result: 'failed', note: messageOf(error) })
      }
    }
    for (const side of ['ours', 'peer', 'naive', 'ours'] as const) {
      const fastest = Math.min(
        ...entries.filter((e) => e.side === side && e.scouted !== null).map((e) => e.scouted ?? Infinity),
      )
      for (const [k, e] of entries.entries()) {
        const r = running.get(k)
        if (!r || e.side !== side || e.result !== 'ok' || e.scouted === null) continue
        if (e.scouted > close * fastest && e.name !== standard) continue
        try {
          entries[k] = { ...e, times: both(e.times, await r.measure(e.scouted)) }
        } catch (error) {
          if (isLoss(error)) throw new DeviceLost(e.name, messageOf(error))
          entries[k] = { ...e, result: 'failed', note: messageOf(error), times: null }
        }
      }
    }
    return entries
  } finally {
    for (const r of running.values())
      try {
        r.free()
      } catch {
        // After a fault nothing can be given back; the fault itself is in the table.
      }
  }
}

/** Ours is measured before and after the peer, so that neither has the warmer chip: the mean of both. */
function both(before: Times | null, now: Times): Times {
  if (!before) return now
  const mean = (a: number, b: number): number => (a + b) / 2
  return {
    event: mean(before.event, now.event),
    flushed: mean(before.flushed, now.flushed),
    backToBack:
      before.backToBack === null || now.backToBack === null ? null : mean(before.backToBack, now.backToBack),
    repeats: before.repeats + now.repeats,
  }
}
