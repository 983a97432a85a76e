/** Serialises a space and its predictor for other threads, and rebuilds them there. */
import type { Kernel, KernelOrigin } from '../../api/kernels/kernel.ts'
import { Space, type SpaceOrigin } from '../../api/kernels/space.ts'
import { type Source, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { CostModel } from '../../cost-model/learned/model.ts'
import type { ModelData, Prediction, TransferableData } from '../../cost-model/prediction.ts'
import { fromTransferable, predictTime } from '../../cost-model/prediction.ts'
import { runOn } from '../../run/compile/program.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import { kernelHash } from '../records/identity.ts'
import { type SketchOptions, sketches, sketchOrigin } from '../spaces/sketches.ts'
import { parseSharedProgram, type SharedProgram, shareProgram } from '../studies/rebuild.ts'
import type { KernelSpace, Point } from '../types.ts'

/** Serialisable description of a predictor. */
export interface PredictorOrigin {
  readonly kind: DeviceKind
  readonly model: CostModel
  readonly data: TransferableData
}

export interface RankingOrigin extends PredictorOrigin {
  readonly program: SharedProgram
  readonly kernel: Pick<KernelOrigin, 'name' | 'instructions' | 'trace'>
  /** Hash of the kernel; predictors of other kernels do not apply. */
  readonly hash: string
  readonly space:
    | ({ readonly of: 'text' } & Omit<SpaceOrigin<Kernel>, 'base'>)
    | { readonly of: 'sketches'; readonly options: SketchOptions }
}

export type Predict = (scheduled: Kernel) => Prediction

const predictors = new WeakMap<Predict, () => PredictorOrigin | null>()

/** @param origin - Evaluated on first use; `null` if the data are too large to send */
export const registerPredictor = (predict: Predict, origin: () => PredictorOrigin | null): void =>
  void predictors.set(predict, origin)

/** Origin of a space and its predictor; `null` for spaces of functions and other predictors. */
export function rankingOrigin(space: KernelSpace<Kernel>, predict: Predict): RankingOrigin | null {
  const sketched = sketchOrigin(space)
  const text = space instanceof Space ? (space as Space<Kernel>).origin() : undefined
  const base = sketched?.base ?? text?.base
  const origin = base?.origin
  const from = base && origin ? predictors.get(predict)?.() : null
  if (!base || !origin || !from) return null
  const { sources, ...kernel } = origin
  return {
    ...from,
    program: shareProgram({ sources: sources as ReadonlyMap<string, Source> }),
    kernel,
    hash: kernelHash(base),
    space: sketched
      ? { of: 'sketches', options: sketched.options }
      : { of: 'text', name: text!.name, args: text!.args, answers: text!.answers, sizes: text!.sizes },
  }
}

export const createPredictor =
  (model: CostModel, kind: DeviceKind, data: ModelData): Predict =>
  (scheduled) =>
    predictTime(model, runOn(scheduled, kind).compilation, data)

/** Expected milliseconds of a point, `Infinity` if it is rejected; `null` if an error occurred. */
export const costOf =
  (space: KernelSpace<Kernel>, predict: Predict) =>
  (point: Point): number | null => {
    try {
      const { milliseconds } = predict(space.kernel(point))
      return Number.isNaN(milliseconds) ? Number.POSITIVE_INFINITY : milliseconds
    } catch (e) {
      return e instanceof SptError ? Number.POSITIVE_INFINITY : null
    }
  }

/** Costs of points, equal to those in the sending thread; `null` if the kernel cannot be rebuilt here. */
export async function costsFrom(origin: RankingOrigin): Promise<(point: Point) => number | null> {
  const { program, kernel, hash, space: of, kind, model } = origin
  const kernelHere = (await parseSharedProgram(program, kernel.instructions))
    .kernel(kernel.name)
    .replay(kernel.trace)
  if (kernelHash(kernelHere) !== hash) return () => null
  const space: KernelSpace<Kernel> =
    of.of === 'sketches'
      ? sketches(kernelHere, of.options)
      : kernelHere.space(of.name, ...of.args).rebuild(of)
  return costOf(space, createPredictor(model, kind, fromTransferable(origin.data)))
}
