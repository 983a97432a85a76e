/** The roofline model: work and times against what a chip can do at most. */
import type { Ceilings } from '../../runtime/ceilings.ts'
import type { Achieved, Bytes, Certainty, Operations, Roof, Times, Work } from './explanation.ts'

const SECOND = 1000

/** The ceiling that a work meets first. Other matrix operations than of 16 bits and f32 have none that was measured. */
export function roofOf(c: Ceilings, { bytes, operations }: Work): Roof | null {
  const cached = bytes.least <= c.cacheBytes
  const times: readonly Roof[] = [
    {
      by: cached ? 'cache' : 'memory',
      atLeast: (SECOND * bytes.least) / (cached ? c.cache : c.memory),
    },
    { by: 'f32', atLeast: (SECOND * operations.plain) / c.f32 },
    { by: 'tf32', atLeast: (SECOND * operations.matrix32) / c.tf32 },
    { by: 'f16', atLeast: (SECOND * operations.matrix16) / c.f16 },
  ]
  const most = times.reduce((a, b) => (b.atLeast > a.atLeast ? b : a))
  return most.atLeast > 0 ? most : null
}

export function achievedOf(c: Ceilings | undefined, work: Work, time: Times): Achieved | null {
  if (!(time.median > 0)) return null
  const seconds = time.median / SECOND
  const { bytes, operations } = work
  const rate = c && (bytes.least <= c.cacheBytes ? c.cache : c.memory)
  const least =
    c && Math.max(operations.plain / c.f32, operations.matrix32 / c.tf32, operations.matrix16 / c.f16)
  return {
    bandwidth: bytes.least / seconds,
    flops: allOperations(operations) / seconds,
    ofBandwidth: rate === undefined ? null : bytes.least / seconds / rate,
    ofFlops: least === undefined || operations.matrixOther > 0 ? null : least / seconds,
  }
}

export const allOperations = (o: Operations): number => o.plain + o.matrix16 + o.matrix32 + o.matrixOther

export function workOf(bytes: Bytes, operations: Operations, certainty: Certainty): Work {
  return {
    bytes,
    operations,
    intensity: bytes.least > 0 ? allOperations(operations) / bytes.least : 0,
    certainty,
  }
}

/** All of it together; what moves between launches is moved by each. */
export function sumOf(works: readonly Work[], cleared: number): Work {
  const sum = (of: (w: Work) => number): number => works.reduce((n, w) => n + of(w), 0)
  return workOf(
    {
      least: sum((w) => w.bytes.least) + cleared,
      loaded: sum((w) => w.bytes.loaded),
      stored: sum((w) => w.bytes.stored) + cleared,
      sharedLoaded: sum((w) => w.bytes.sharedLoaded),
      sharedStored: sum((w) => w.bytes.sharedStored),
    },
    {
      plain: sum((w) => w.operations.plain),
      matrix16: sum((w) => w.operations.matrix16),
      matrix32: sum((w) => w.operations.matrix32),
      matrixOther: sum((w) => w.operations.matrixOther),
    },
    {
      share: Math.min(1, ...works.map((w) => w.certainty.share)),
      assumed: works.some((w) => w.certainty.assumed),
    },
  )
}
