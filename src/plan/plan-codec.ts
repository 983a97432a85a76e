/** Codec of the fields of a plan, which validates each of them. Expressions are read by `read.ts`. */
import { DEVICE_KINDS, TARGET_NAMES } from '../backends/target.ts'
import { SIZE_OPERATORS, type SizeExpr } from '../ir/expressions/size-expressions.ts'
import { dtype } from './binding-codecs.ts'
import {
  type Codec,
  count,
  flag,
  integer,
  list,
  malformed,
  objectAt,
  oneOf,
  optional,
  pair,
  record,
  text,
  triple,
} from './codec.ts'
import { expr } from './expressions.ts'
import {
  type Expression,
  type PackedArray,
  type Plan,
  type PlanArgument,
  type PlanBranches,
  type PlanBuffer,
  type PlanCheck,
  type PlanClear,
  type PlanFact,
  type PlanLaunch,
  type PlanLostWrites,
  type PlanModule,
  type PlanNeeds,
  type PlanRounds,
  type PlanScalar,
  type PlanSize,
  type PlanStep,
  type PlanUnorderedSum,
  SCHEMA,
} from './schema.ts'

/** An expression that stays data. */
const expression: Codec<Expression> = {
  write: (value) => value,
  read(json, path) {
    expr.read(json, path)
    return json as Expression
  },
}
/** An expression of operators on sizes alone. */
const sizeExpression: Codec<SizeExpr> = {
  write: (value) => value,
  read(json, path) {
    if (!isSizeExpr(json)) malformed(path, json, 'an expression over sizes')
    return json as SizeExpr
  },
}
const isSizeExpr = (json: unknown): boolean =>
  typeof json === 'number' ||
  typeof json === 'string' ||
  (Array.isArray(json) &&
    (json[0] === 'select' || json[0] in SIZE_OPERATORS) &&
    json.slice(1).every(isSizeExpr))
const node: Codec<never> = { write: (value) => value, read: (json, path) => objectAt(json, path) as never }
const names = list(text)

const BUFFER = {
  name: text,
  dtype,
  role: oneOf(['in', 'out', 'inout', 'local', 'index']),
  length: expression,
  storage: oneOf(['native', 'word']),
} as const

/** Chooses the codec of an object by the first field that it has. */
function byField<T>(cases: Readonly<Record<string, Codec<never>>>): Codec<T> {
  const of = (json: unknown, path: string): Codec<unknown> => {
    const given = objectAt(json, path)
    const field = Object.keys(cases).find((name) => name in given)
    if (field === undefined) return malformed(path, json, `an object with ${Object.keys(cases).join(' or ')}`)
    return cases[field] as unknown as Codec<unknown>
  }
  return {
    write: (value) => of(value, '').write(value),
    read: (json, path) => of(json, path).read(json, path) as T,
  }
}

type BufferArgument = Extract<PlanArgument, { buffer: string }>
type ScalarArgument = Extract<PlanArgument, { scalar: string }>
type MatrixArgument = Extract<PlanArgument, { matrix: string }>
const argument = byField<PlanArgument>({
  buffer: record<BufferArgument>({
    buffer: text,
    dtype,
    access: oneOf(['read', 'read_write']),
  }) as Codec<never>,
  scalar: record<ScalarArgument>({ scalar: text, dtype }) as Codec<never>,
  matrix: record<MatrixArgument>({
    matrix: text,
    of: text,
    dtype,
    rows: expression,
    columns: expression,
    box: pair(count),
    swizzle: count,
  }) as Codec<never>,
})

const launch = record<PlanLaunch>({
  launch: text,
  module: count,
  grid: triple(expression),
  block: triple(count),
  shared: optional(count) as Codec<number>,
  cluster: optional(triple(count)) as Codec<readonly [number, number, number]>,
  waits: optional(flag) as Codec<boolean>,
  place: optional(text) as Codec<string>,
  when: optional(
    record<NonNullable<PlanLaunch['when']>>({
      alternative: count,
      choice: text,
      grids: optional(count) as Codec<number>,
    }),
  ) as Codec<NonNullable<PlanLaunch['when']>>,
  args: list(argument),
  reads: names,
  writes: names,
})
const step = byField<PlanStep>({
  clear: record<PlanClear>({ clear: text }) as Codec<never>,
  launch: launch as Codec<never>,
})

const some = <T>(codec: Codec<T>): Codec<T> => optional(codec) as Codec<T>

/** All fields of a plan in order. Runtime formats and the binding are read by `binding-codecs.ts`. */
export const planFields: Codec<Plan> = record<Plan>({
  schema: oneOf([SCHEMA]),
  kernel: text,
  schedule: { write: (value) => value, read: (json, path) => (json === null ? null : text.read(json, path)) },
  index: {
    write: (value) => value,
    read: (json, path) => (json === 32 || json === 64 ? json : malformed(path, json, '32 or 64')),
  },
  device: oneOf(DEVICE_KINDS),
  target: oneOf(TARGET_NAMES),
  needs: record<PlanNeeds>({
    features: names,
    buffersPerLaunch: count,
    threadsPerBlock: count,
    block: triple(count),
    sharedBytes: count,
    lanes: some(count),
  }),
  sizes: list(record<PlanSize>({ name: text, from: oneOf(['caller', 'counted', 'measured', 'packed']) })),
  scalars: list(record<PlanScalar>({ name: text, dtype })),
  buffers: list(record<PlanBuffer>(BUFFER)),
  packed: some(list(record<PackedArray>({ ...BUFFER, in: text, base: text, at: expression }))),
  modules: list(
    record<PlanModule>({
      name: text,
      text,
      sha256: text,
      capabilities: some(
        list(record<{ readonly name: string; readonly by: string }>({ name: text, by: text })),
      ),
      needs: some(record<NonNullable<PlanModule['needs']>>({ instr: text, version: count })),
    }),
  ),
  steps: list(step),
  rounds: some(
    list(
      record<PlanRounds>({ name: text, from: count, to: count, count: some(expression), while: some(text) }),
    ),
  ),
  branches: some(
    record<PlanBranches>({
      choice: text,
      schedules: list(record<PlanBranches['schedules'][number]>({ text, when: some(text) })),
      fillRatios: some(
        list(
          record<NonNullable<PlanBranches['fillRatios']>[number]>({
            text,
            format: count,
            elements: expression,
          }),
        ),
      ),
    }),
  ),
  checks: list(
    record<PlanCheck>({
      when: some(list(sizeExpression)),
      least: some(sizeExpression),
      most: some(sizeExpression),
      word: some(flag),
      what: text,
      counts: some(flag),
      launch: text,
      text,
      names,
    }),
  ),
  facts: some(list(record<PlanFact>({ size: text, relation: oneOf(['multiple', 'equal']), by: integer }))),
  lostWrites: some(record<PlanLostWrites>({ buffer: text, targets: names })),
  unorderedSums: some(list(record<PlanUnorderedSum>({ launch: text, buffer: text, reducer: text }))),
  precision: some(count),
  runtimeFormats: some(list(node)),
  binding: node,
})
