/** Roofline of the kernels of the final comparison, or the reason why it is left out. */

import { colorOf } from '../../pictures/picture/svg.ts'
import { allOperations } from '../../search/tune/finals/last-comparison.ts'
import type { TuneResult } from '../../search/tune/index.ts'
import { type AxesOptions, drawLayers, type Layer } from '../chart/layers.ts'
import type { Figure } from '../figure.ts'
import { finalName, timedFinals } from './finals.ts'
import { paragraph } from './page.ts'

const TERA = 1e12

export function rooflineSection({ ceilings, finalists, subject }: TuneResult): readonly string[] {
  const note = (text: string): readonly string[] => [paragraph(text, 'note')]
  if (!ceilings)
    return note(
      `Not drawn: the peak performance of ${subject.device.name} has not been measured (spt calibrate).`,
    )
  const timed = timedFinals(finalists)
  const counted = timed.flatMap((f) => (f.explanation ? [{ ...f, work: f.explanation.total }] : []))
  const errorCodes = timed.flatMap((f) =>
    f.unexplained && 'code' in f.unexplained ? [f.unexplained.code] : [],
  )
  const points = counted
    .filter(
      ({ work, timing }) =>
        allOperations(work.operations) > 0 && work.bytes.compulsory > 0 && timing.median > 0,
    )
    .map(({ work, timing, ...f }) => ({
      name: finalName(f),
      intensity: work.intensity,
      rate: allOperations(work.operations) / (timing.median / 1000),
    }))
  if (points.length === 0)
    return note(
      counted.length > 0
        ? 'Not drawn: the kernels have no floating-point operations or move no bytes.'
        : `Not drawn: bytes and operations were not counted${errorCodes.length > 0 ? ` (${errorCodes.join(', ')})` : ' (explain)'}.`,
    )
  const works = counted.map((f) => f.work)
  const ceiling = (name: string, kind: Ceiling['kind'], perSecond: number, unit: string): Ceiling => ({
    name: `${name}: ${Number((perSecond / TERA).toPrecision(3))} ${unit}`,
    kind,
    perSecond,
  })
  const drawnCeilings = [
    ceiling('memory', 'bytes', ceilings.memory, 'TB/s'),
    ...(works.some((w) => w.bytes.compulsory <= ceilings.cacheBytes)
      ? [ceiling('cache', 'bytes', ceilings.cache, 'TB/s')]
      : []),
    ceiling('f32', 'operations', ceilings.f32, 'TFLOP/s'),
    ...(works.some((w) => w.operations.matrix32 > 0)
      ? [ceiling('matrix units, tf32', 'operations', ceilings.tf32, 'TFLOP/s')]
      : []),
    ...(works.some((w) => w.operations.matrix16 > 0)
      ? [ceiling('matrix units, f16', 'operations', ceilings.f16, 'TFLOP/s')]
      : []),
  ]
  return [
    roofline(drawnCeilings, points, {
      title: 'Measured throughput under the ceilings of the device',
      width: 900,
      height: 340,
    }).html(),
    paragraph(
      `Ceilings as measured on the chip; the cache's holds where all arrays together take at most ${Math.round(ceilings.cacheBytes / 1e6)} MB.`,
      'note',
    ),
  ]
}

// The roofline model (Williams, Waterman and Patterson, CACM 52(4), 2009): performance of kernels under the
// ceilings of a device.

/** Bandwidth (bytes per second) or throughput (operations per second) of a device. */
interface Ceiling {
  readonly name: string
  readonly kind: 'bytes' | 'operations'
  readonly perSecond: number
}

interface RooflinePoint {
  readonly name: string
  /** Operations per byte of compulsory memory traffic. */
  readonly intensity: number
  /** Operations per second. */
  readonly rate: number
}

const GIGA = 1e9
/** Factor between the outermost points and the ends of the axis. */
const MARGIN = 3
const CEILING_COLOR = '#777777'

/** Draws a roofline; requires points with operations, and ceilings of both kinds. */
export function roofline(
  ceilings: readonly Ceiling[],
  points: readonly RooflinePoint[],
  options: AxesOptions = {},
): Figure {
  const slopes = ceilings.filter((c) => c.kind === 'bytes')
  const plateaus = ceilings.filter((c) => c.kind === 'operations')
  const highest = Math.max(...plateaus.map((c) => c.perSecond))
  const steepest = Math.max(...slopes.map((c) => c.perSecond))
  const ridges = slopes.map((c) => highest / c.perSecond)
  const left = Math.min(...points.map((p) => p.intensity), ...ridges) / MARGIN
  const right = Math.max(...points.map((p) => p.intensity), ...ridges) * MARGIN
  const ceilingLayer = ({ name, kind, perSecond }: Ceiling): Layer => {
    const endpoints = kind === 'bytes' ? [left, highest / perSecond] : [perSecond / steepest, right]
    const labelled = kind === 'bytes' ? 0 : 1
    return {
      shape: 'line',
      color: CEILING_COLOR,
      points: endpoints.map((x, k) => ({
        x,
        y: (kind === 'bytes' ? perSecond * x : perSecond) / GIGA,
        ...(k === labelled && { label: name }),
      })),
    }
  }
  const layers = [
    ...ceilings.map(ceilingLayer),
    ...points.map(
      (p, k): Layer => ({
        shape: 'dots',
        points: [{ x: p.intensity, y: p.rate / GIGA }],
        color: colorOf(k),
        name: p.name,
        radius: 5,
        opacity: 1,
      }),
    ),
  ]
  return drawLayers(layers, {
    ...options,
    log: 'xy',
    labels: { x: 'arithmetic intensity: FLOP for each byte that has to be moved', y: 'GFLOP/s' },
  })
}
