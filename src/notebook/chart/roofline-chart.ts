/**
 * The roofline model (Williams, Waterman and Patterson, CACM 52(4), 2009): performance of kernels under the ceilings of a
 * device.
 */
import { colorOf } from '../../pictures/picture/svg.ts'
import type { Figure } from '../figure.ts'
import { type AxesOptions, drawLayers, type Layer } from './layers.ts'

/** Bandwidth (bytes per second) or throughput (operations per second) of a device. */
export interface Ceiling {
  readonly name: string
  readonly kind: 'bytes' | 'operations'
  readonly perSecond: number
}

export interface RooflinePoint {
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
