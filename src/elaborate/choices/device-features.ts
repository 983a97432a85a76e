/** Features of devices, in conditions of choices and in the `needs` of instructions. */
import { appliedName } from '../../ast/print/message-text.ts'

/** Names of experimental extensions, which may change at any time. */
export const EXPERIMENTAL = /^chromium_\w+$/

type Kind = 'number' | 'type'

/** Features of devices, with the kinds of their arguments. All features that `needs` may name are included. */
export const FEATURES: ReadonlyMap<string, readonly Kind[]> = new Map([
  ['f16', []],
  ['bf16', []],
  ['f64', []],
  ['subgroups', []],
  ['timestamp_query', []],
  ['async_copy', []],
  ['clusters', []],
  ['tensor_maps', []],
  ['chromium_experimental_subgroup_matrix', []],
  ['lanes', ['number']],
  ['subgroup_size', ['number']],
  ['subgroup_matrix', ['number', 'number', 'number', 'type', 'type']],
])

export const FEATURE_WORDS: readonly string[] = [...FEATURES.keys()]

/** A feature as devices list it: `subgroup_matrix(16, 16, 16, f16, f32)`. */
export const featureText: (name: string, args: readonly string[]) => string = appliedName
