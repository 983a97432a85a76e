/**
 * The roofline model (Williams, Waterman and Patterson, CACM 52(4), 2009): performance of kernels under the ceilings of a
 * device.
 */
import { colorOf } from '../../pictures/picture/svg.ts'
import type { Figure } from '../figure.ts'
import { type AxesOptions, type Layer, layered } from './layers.ts'

/** Bytes a second, or operations a second. */
export interface Ceiling {
  readonly name: string
  readonly kind: 'bytes' | 'operations'
  readonly perSecond: number
}

export interface RooflinePoint {
  readonly name: string
  /** Operations for each byte that has to be moved. */
  readonly intensity: number
  /** Operations a second. */
  readonly rate: number
}

const GIGA = 1e9
/** Margin around the outermost points. */
const MARGIN = 3
const ROOF = '#777777'

/** Points need operations, and both kinds of ceilings have to be there. */
export function roofline(
  ceilings: readonly Ceiling[],
  points: readonly RooflinePoint[],
  options: AxesOptions = {},
): Figure {
  const slopes = ceilings.filter((c) => c.kind === 'bytes')
  const tops = ceilings.filter((c) => c.kind === 'operations')
  const highest = Math.max(...tops.map((c) => c.perSecond))
  const steepest = Math.max(...slopes.map((c) => c.perSecond))
  const ridges = slopes.map((c) => highest / c.perSecond)
  const left = Math.min(...points.map((p) => p.intensity), ...ridges) / MARGIN
  const right = Math.max(...points.map((p) => p.intensity), ...ridges) * MARGIN
  const roof = ({ name, kind, perSecond }: Ceiling): Layer => {
    const ends = kind === 'bytes' ? [left, highest / perSecond] : [perSecond / steepest, right]
    const labelled = kind === 'bytes' ? 0 : 1
    return {
      shape: 'line',
      color: ROOF,
      points: ends.map((x, k) => ({
        x,
        y: (kind === 'bytes' ? perSecond * x : perSecond) / GIGA,
        ...(k === labelled && { label: name }),
      })),
    }
  }
  const layers = [
    ...ceilings.map(roof),
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
  return layered(layers, {
    ...options,
    log: 'xy',
    labels: { x: 'arithmetic intensity: FLOP for each byte that has to be moved', y: 'GFLOP/s' },
  })
}
