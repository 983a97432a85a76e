/**
 * The serialised plan: a compiled kernel as JSON, which every runtime executes (our own `run`, web pages, other languages).
 * `docs/reference/plan.md` documents each field; `plan-codec.ts` has the tables by which plans are validated and converted.
 */
import type { DeviceKind } from '../backends/target.ts'
import type { TargetName } from '../backends/targets/index.ts'
import type { SizeExpr } from '../ir/expressions/size-expressions.ts'
import type { Dtype } from '../ir/values/dtype.ts'

/** Name and version of the schema. A reader rejects later versions. */
export const SCHEMA = 'sparsetile-plan/1'

/**
 * An integer expression over sizes: an integer, the name of a size, or an operator with operands, such as
 * `["div", ["add", "m", 7], 8]`. Quotients by 0 are 0. Operators: `add`, `sub`, `mul`, `div`, `mod` (towards minus infinity), `quo`,
 * `rem` (towards zero), `min`, `max`, `lt`, `le`, `gt`, `ge`, `eq`, `ne`, `and`, `or`, `neg`, `not`, `["select", cond, then, else]`,
 * `["cast", dtype, x]`. Formats use in addition `["const", dtype, value]`, `["var", dtype, name]`, functions of
 * `ir/values/math.ts`, `["load", buffer, [index, …]]` (`["load", buffer, [index, …], dtype]` unless the element is an index) and
 * `["search", method, buffer, lo, hi, value]`.
 */
export type Expression = number | string | readonly [string, ...Operand[]]
export type Operand = Expression | readonly Expression[]

/** A number of JSON; infinities and NaN are strings. */
export type JsonNumber = number | 'inf' | '-inf' | 'nan'

export interface PlanSize {
  readonly name: string
  /**
   * `caller`: given, or the extent of a tensor; `counted`: positions of the index arrays of an axis; `measured`: computed while a
   * format is built; `packed`: the first element of an array of `packed`.
   */
  readonly from: 'caller' | 'counted' | 'measured' | 'packed'
}

export interface PlanScalar {
  readonly name: string
  readonly dtype: Dtype
}

/** An array in device memory. */
export interface PlanBuffer {
  readonly name: string
  readonly dtype: Dtype
  /** `index`: an array of an axis or a table; `local`: a temporary, which is not initialised. */
  readonly role: 'in' | 'out' | 'inout' | 'local' | 'index'
  /** In elements. */
  readonly length: Expression
  /** `word`: each element occupies 32 bits (f16 and bf16 as f32, i8 as i32, u8 and bool as u32). */
  readonly storage: 'native' | 'word'
}

/** A read-only array inside of another, for devices with few bindings. */
export interface PackedArray extends PlanBuffer {
  /** The buffer that contains it. */
  readonly in: string
  /** The size that holds the index of its first element, and the value of this size. */
  readonly base: string
  readonly at: Expression
}

/** A text of the target's language, with one or more entry points. */
export interface PlanModule {
  readonly name: string
  readonly text: string
  /** SHA-256 hash of the text in UTF-8, hexadecimal. */
  readonly sha256: string
  /** Device features that the text requires, and the instruction or memory that requires each. */
  readonly capabilities?: readonly { readonly name: string; readonly by: string }[]
  /** The instruction with the highest device requirement, and the version that it requires. */
  readonly needs?: { readonly instr: string; readonly version: number }
}

/** Arguments of an entry, in the order of its signature. On WebGPU all scalars are in one uniform block, the last binding. */
export type PlanArgument =
  | { readonly buffer: string; readonly dtype: Dtype; readonly access: 'read' | 'read_write' }
  | { readonly scalar: string; readonly dtype: Dtype }
  /** A description of a buffer as a row-major matrix (tensor map). `box`: rows and columns; `swizzle`: bytes. */
  | {
      readonly matrix: string
      readonly of: string
      readonly dtype: Dtype
      readonly rows: Expression
      readonly columns: Expression
      readonly box: readonly [number, number]
      readonly swizzle: number
    }

/** Sets all bytes of a buffer to zero. */
export interface PlanClear {
  readonly clear: string
}

export interface PlanLaunch {
  /** Name of the entry point. */
  readonly launch: string
  /** Index in `modules`. */
  readonly module: number
  /** Number of blocks; the launch is skipped if one is not positive. On `cpu` one call executes all blocks. */
  readonly grid: readonly [Expression, Expression, Expression]
  readonly block: readonly [number, number, number]
  /** Dynamic shared memory in bytes (CUDA). */
  readonly shared?: number
  /** Cluster size in blocks (CUDA). */
  readonly cluster?: readonly [number, number, number]
  /** The text waits for the previous launch before it accesses memory of earlier steps (CUDA programmatic dependent launch). */
  readonly waits?: boolean
  /** Source location, for messages: `program.spt:15`. */
  readonly place?: string
  /**
   * The launch has an effect only if its alternative is selected: element 0 of `choice` is the number `alternative`. The text tests this, unless
   * `grids` is present: the element of `choice` where the three workgroup counts begin, which are 0 for other alternatives.
   */
  readonly when?: {
    readonly alternative: number
    readonly choice: string
    readonly grids?: number
  }
  readonly args: readonly PlanArgument[]
  /** Buffers whose elements the launch reads and writes, directly or as a matrix. */
  readonly reads: readonly string[]
  readonly writes: readonly string[]
}

export type PlanStep = PlanClear | PlanLaunch

/** Schedules in one plan, of which each run executes one, by its own data. */
export interface PlanBranches {
  /** The i32 array whose element 0 is the number of the selected schedule, and element 1 the number without regard to capacities. */
  readonly choice: string
  /** Calls of the schedules; `when`: the condition in the dispatch, none for the last. */
  readonly schedules: readonly { readonly text: string; readonly when?: string }[]
  /** Fill ratios in the conditions. `format`: index in `runtimeFormats`; `elements`: those of the dense tensor. */
  readonly fillRatios?: readonly {
    readonly text: string
    readonly format: number
    readonly elements: Expression
  }[]
}

/** Steps that run repeatedly, in order. */
export interface PlanRounds {
  readonly name: string
  /** Index of the first step, and of the first step after them. */
  readonly from: number
  readonly to: number
  /** Number of rounds; unlimited if absent. */
  readonly count?: Expression
  /** An i32 buffer with one element: a round runs only if it is not 0. */
  readonly while?: string
}

/**
 * An index expression that must be exact. The sizes of a run are rejected if all of `when` are positive and `least` or `most` is
 * out of range: beyond 32 bits, or beyond 2^53 for texts with 64-bit indices unless `word`. A check of an unknown size holds.
 */
export interface PlanCheck {
  readonly when?: readonly SizeExpr[]
  readonly least?: SizeExpr
  readonly most?: SizeExpr
  /** The value has 32 bits in every text. */
  readonly word?: boolean
  /** For messages: the expression's role (`an index of C`), whether it counts iterations, its launch, its text, and the names in it. */
  readonly what: string
  readonly counts?: boolean
  readonly launch: string
  readonly text: string
  readonly names: readonly string[]
}

/** A constraint on a size: a multiple of `by`, or equal to it. */
export interface PlanFact {
  readonly size: string
  readonly relation: 'multiple' | 'equal'
  readonly by: number
}

/** After a run, word k of `buffer` is not 0 if a write to `targets[k]` found no element. */
export interface PlanLostWrites {
  readonly buffer: string
  readonly targets: readonly string[]
}

/** A sum whose order differs from run to run, because a launch updates floats by atomics. */
export interface PlanUnorderedSum {
  /** Name of the launch, which contains the names of its loops. */
  readonly launch: string
  readonly buffer: string
  /** Name of the reducer, such as `+`. */
  readonly reducer: string
}

/** Lists of a format that each run builds for a dense tensor (`live`). */
export interface RuntimeFormat {
  readonly tensor: string
  readonly args: readonly (JsonNumber | string)[]
  readonly parts: readonly RuntimeFormatPart[]
}

export interface RuntimeFormatPart {
  /** Label of the part, empty if there is one. */
  readonly label: string
  /** The format of the part, as in `binding.reformats`; its `text` is the format as written. */
  readonly instance: JsonNode
  /** The buffer of the values. */
  readonly buffer: string
  readonly axis: string
  /** After a run, this buffer has the number of coordinates of each list. */
  readonly counts: string
  /** Number of lists. */
  readonly lists: Expression
  /** Lists are padded to multiples of this many positions. */
  readonly width: number
  /** Upper bound on the coordinates of a list. */
  readonly extent: Expression
  /** Value slots for each listed coordinate. */
  readonly slots: Expression
  /** A run fails with `run/overflow` if `ceil(max(counts) / width) > capacity`. */
  readonly capacity?: { readonly counts: string; readonly width: number; readonly capacity: Expression }
}

/** Device properties that the texts were printed for. */
export interface PlanNeeds {
  /** Features of the device, such as `subgroups`, `shader-f16`, `sm_90`. */
  readonly features: readonly string[]
  /** Least limits of the device. */
  readonly buffersPerLaunch: number
  readonly threadsPerBlock: number
  readonly block: readonly [number, number, number]
  readonly sharedBytes: number
  /** Number of neighbouring threads that exchange registers (WebGPU). */
  readonly lanes?: number
}

/** A compiled kernel. */
export interface Plan {
  readonly schema: typeof SCHEMA
  readonly kernel: string
  /** Name of the schedule whose steps were applied, or of the dispatch with `branches`; `null`: none. */
  readonly schedule: string | null
  /** The width of type `index` in the texts, in bits. */
  readonly index: 32 | 64
  readonly device: DeviceKind
  readonly target: TargetName
  readonly needs: PlanNeeds
  readonly sizes: readonly PlanSize[]
  readonly scalars: readonly PlanScalar[]
  readonly buffers: readonly PlanBuffer[]
  readonly packed?: readonly PackedArray[]
  readonly modules: readonly PlanModule[]
  readonly steps: readonly PlanStep[]
  /** In order, without overlaps. */
  readonly rounds?: readonly PlanRounds[]
  readonly branches?: PlanBranches
  readonly checks: readonly PlanCheck[]
  readonly facts?: readonly PlanFact[]
  readonly lostWrites?: PlanLostWrites
  /** If absent, equal inputs give bitwise equal outputs in every run. */
  readonly unorderedSums?: readonly PlanUnorderedSum[]
  /** The fewest mantissa bits that instructions keep of a factor; all if absent. */
  readonly precision?: number
  readonly runtimeFormats?: readonly RuntimeFormat[]
  /**
   * The kernel over coordinates after the schedule's formats, by which tensors are converted to `buffers` and back. A runtime that is
   * given ready arrays ignores it.
   */
  readonly binding: PlanBinding
}

/** Stored axes, tensors and formats. Nodes are those of `ir/coordinates` and `ir/formats`, with `Expression`s. */
export interface PlanBinding {
  readonly name: string
  readonly params: readonly JsonNode[]
  readonly axes: readonly JsonNode[]
  readonly buffers: readonly JsonNode[]
  readonly reformats: readonly JsonNode[]
  /** Axes that iterations visit. */
  readonly visited: readonly string[]
  readonly skippedProducts?: readonly JsonNode[]
}

export interface JsonNode {
  readonly [field: string]: unknown
}

/** At most six plans of one kernel, one of which is selected for the sizes and statistics of a call. */
export interface PlanFamily {
  readonly schema: typeof SCHEMA
  readonly kernel: string
  readonly choose: {
    /** Name of the dispatch with its arguments. */
    readonly schedule: string
    /** Statistics of tensors by the names that conditions use, such as `nnz(A)`. */
    readonly statistics: Readonly<Record<string, PlanStatistic>>
    /** The first branch whose conditions, over sizes and statistics, all hold. `schedule`: call of the schedule of the plan. */
    readonly branches: readonly {
      readonly when: readonly Expression[]
      readonly schedule: string
      readonly plan: number
    }[]
    /** The kernel as declared, by which sizes and statistics are computed. */
    readonly binding: PlanBinding
  }
  readonly plans: readonly Plan[]
}

/**
 * `nnz` of a tensor: number of stored elements. `fill_ratio`: slots that the format has for the tensor, divided by the elements of the
 * tensor. Others, of an axis: number of positions, and lengths and number of its segments.
 */
export interface PlanStatistic {
  readonly kind: 'count' | 'longest' | 'shortest' | 'mean' | 'empty' | 'segments' | 'nnz' | 'fill_ratio'
  readonly of: string
  /** Only for `fill_ratio`: the format with its arguments, as in `binding.reformats`. */
  readonly format?: JsonNode
}
