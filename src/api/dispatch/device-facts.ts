/** Device properties in conditions of dispatches: its kind, figures and features. */
import { failAs, failWith } from '../../ast/diagnostics/diagnostic.ts'
import { expectValues, NUMBER, POSITIVE_COUNT, TEXTS } from '../../ast/diagnostics/value-kinds.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import type { CostModel, ModelledDevice } from '../../cost-model/learned/model.ts'
import { installedPredictor } from '../../cost-model/predictor.ts'
import { EXPERIMENTAL, FEATURE_WORDS, featureText } from '../../elaborate/choices/device-features.ts'
import type { DeviceQuestion } from '../../elaborate/index.ts'
import type { Var } from '../../ir/expressions/expr.ts'
import { CPU_FEATURES } from '../../runtime/cpu/device.ts'
import type { Device, DeviceKind, DeviceLimits } from '../../runtime/device.ts'
import type { ResidentTensor } from '../../storage/engines/device/resident-tensors.ts'
import { expectArgument, isRecord } from '../inputs/argument-checks.ts'
import type { RunInputs } from '../inputs/bound-inputs.ts'

/** Device for which a schedule is selected, or its kind. */
export type SelectionContext =
  | DeviceKind
  | (Pick<Device, 'kind' | 'features'> & { readonly limits?: Pick<DeviceLimits, 'processors'> })

/** Properties of a device of which only the kind is given; an open device reports its own. */
export interface DeviceFacts {
  /** Compute capability of the CUDA device: 9.0. */
  readonly capability?: number | undefined
  /** Number of multiprocessors (SMs) of the CUDA device. */
  readonly processors?: number | undefined
  /** Features for conditions with `has`: `['f16', 'subgroup_matrix(16, 16, 16, f16, f32)']`. */
  readonly features?: readonly string[] | undefined
}

/** Inputs of a binding under a dispatch: values, statistics, and properties of the device. */
export interface BindInputs extends RunInputs, DeviceFacts {}

/** Inputs of a schedule selection. */
export interface SelectionInputs extends BindInputs {
  /**
   * Tensors on the device, by name. Shapes are used, and the structure of those that are arrays over the kernel's axes; required
   * offsets are downloaded once.
   */
  readonly resident?: Readonly<Record<string, ResidentTensor>>
}

/** Throws SptError `api/argument` or `choose/unknown-feature` for invalid device properties. */
export function checkDeviceFacts(facts: DeviceFacts, questions: Iterable<DeviceQuestion>): void {
  expectValues(facts, {
    capability: { ...NUMBER, expected: 'a compute capability: 9.0' },
    processors: { ...POSITIVE_COUNT, expected: 'a number of multiprocessors: 132' },
    features: { ...TEXTS, expected: "a list of texts: ['f16', 'subgroup_size(32)']" },
  })
  const { features } = facts
  if (features === undefined) return
  checkFeatures(
    features,
    [...questions].flatMap((q) => (q.kind === 'has' ? [wordOf(q.feature)] : [])),
  )
}

/** Throws SptError `choose/unknown-feature` for names that are neither features of a device nor `mentioned`. */
export function checkFeatures(features: readonly string[], mentioned: readonly string[] = []): void {
  const candidates = [...new Set([...FEATURE_WORDS, ...mentioned])]
  for (const name of features.map(wordOf))
    if (!candidates.includes(name) && !EXPERIMENTAL.test(name))
      failWith('choose/unknown-feature', `no device has a feature ${name}`, {
        lookup: { name, candidates },
        expected: candidates.join(', '),
      })
}

/** Returns a device property as a number; booleans are 0 and 1. Throws SptError `api/argument`, `choose/unknown-…`. */
export function deviceAnswer(
  on: SelectionContext,
  given: DeviceFacts,
  question: DeviceQuestion,
  variable: Var,
): number {
  const kind = kindOf(on)
  switch (question.kind) {
    case 'is':
      return question.device === kind ? 1 : 0
    case 'capability':
      return kind === 'cuda' ? capabilityOf(on, given.capability, variable) : 0
    case 'processors':
      return processorsOf(on, given.processors, variable)
    case 'cost_model':
      return modelFor(on) ? 1 : 0
    case 'has': {
      const features = featuresOf(on, given.features, question.feature, variable)
      return features.has(question.feature) ? 1 : 0
    }
  }
}

/** Returns the kind of a device. Throws SptError `api/argument`. */
export function kindOf(on: SelectionContext): DeviceKind {
  const kind: unknown = isRecord(on) ? on.kind : on
  expectArgument(
    (DEVICE_KINDS as readonly unknown[]).includes(kind) && (!isRecord(on) || isRecord(on.features)),
    'the device',
    on,
    `a device, or a kind of device: ${DEVICE_KINDS.join(', ')}`,
  )
  return kind as DeviceKind
}

const isNamed = (on: unknown): on is ModelledDevice => isRecord(on) && typeof on.name === 'string'
/** The cost model of the device, or of its kind; null if there is none. Throws SptError `api/argument`. */
export const modelFor = (on: SelectionContext): CostModel | null =>
  installedPredictor()?.selectionModel(kindOf(on), isNamed(on) ? on : undefined) ?? null

/** Compute capability of a CUDA device: 9.0 if it has the feature `sm_90`; the given one without a device. */
function capabilityOf(on: SelectionContext, given: number | undefined, { span }: Var): number {
  const version = typeof on === 'string' ? null : /(?:^|,)sm_(\d+)(\d)(?:,|$)/.exec([...on.features].join())
  if (version) return Number(`${version[1]}.${version[2]}`)
  if (given !== undefined) return given
  return failWith('choose/unknown-capability', 'missing compute capability (required by the dispatch)', {
    ...(span && { span }),
    expected: 'a device, or a compute capability',
    hint: 'pass the capability (capability: 9.0, or --capability 9.0 on the command line), or name a schedule (spt tune: a space)',
  })
}

/** Number of SMs. There is no default, because any number would select a branch. */
function processorsOf(on: SelectionContext, given: number | undefined, { span }: Var): number {
  const own = typeof on === 'string' ? undefined : on.limits?.processors
  if (own !== undefined) return own
  if (given !== undefined) return given
  const kind = kindOf(on)
  const give = 'processors: 132, or --processors 132 on the command line'
  return failAs('choose/unknown-processors', {
    message:
      kind === 'cuda'
        ? 'missing number of SMs (required by the dispatch)'
        : `${kind} devices do not report the number of SMs (required by the dispatch)`,
    ...(span && { span }),
    expected: 'a CUDA device, or the number of SMs',
    hint:
      kind === 'cuda'
        ? `pass the number (${give}), or name a schedule (spt tune: a space)`
        : `restrict the condition to CUDA (cuda and …), pass the number (${give}), or name a schedule (spt tune: a space)`,
  })
}

/** Features of the device; the CPU device has the same ones everywhere. */
function featuresOf(
  on: SelectionContext,
  given: readonly string[] | undefined,
  feature: string,
  { span }: Var,
): ReadonlySet<string> {
  if (typeof on !== 'string') return on.features
  if (on === 'cpu') return CPU_FEATURES
  if (given !== undefined) return new Set(given.map(canonical))
  return failAs('choose/unknown-feature', {
    message: `missing features of the device (the dispatch depends on ${feature})`,
    ...(span && { span }),
    expected: 'a device, or a list of features',
    hint: `pass all features (features: ['${feature}'], or --feature '${feature}' on the command line), or name a schedule (spt tune: a space)`,
  })
}

const wordOf = (feature: string): string => feature.split('(', 1)[0]!.trim()

/** Returns the feature in the spelling that devices report. */
function canonical(feature: string): string {
  const [, args = ''] = /\((.*)\)\s*$/s.exec(feature) ?? []
  return featureText(wordOf(feature), args === '' ? [] : args.split(',').map((a) => a.trim()))
}
