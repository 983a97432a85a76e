/** Messages between the page and the worker that holds the compiler. All data are plain and can be cloned. */

/** A matrix by name: of the package, generated (`blocks:512`), or a file that was dropped into the page. */
export interface MatrixChoice {
  readonly name: string
  /** Content of a dropped file. */
  readonly bytes?: Uint8Array
}

/** A format and a schedule, next to which another pair can be shown. */
export interface Variant {
  /** As written in a schedule, such as `bsr(8)`; empty: the format that the schedule selects. */
  readonly format: string
  /** Name of a schedule, with arguments: `gpu(8, 32)`; empty: the default schedule. */
  readonly schedule: string
}

export const DEVICES = ['webgpu', 'cpu'] as const
export type DeviceChoice = (typeof DEVICES)[number]

export const TEXTS = ['js', 'wgsl', 'cuda'] as const
export type TextTarget = (typeof TEXTS)[number]

/** A kernel of the text with its data. */
export interface Problem {
  readonly text: string
  readonly kernel: string
  readonly matrix: MatrixChoice
  /** Sizes and scalars that the matrix does not determine. */
  readonly values: Readonly<Record<string, number>>
}

export type Request =
  | { readonly kind: 'check'; readonly text: string }
  /** The steps of the text's schedules: whether a step is legal shows when it is applied. */
  | { readonly kind: 'steps'; readonly text: string }
  | { readonly kind: 'matrix'; readonly matrix: MatrixChoice }
  | { readonly kind: 'picture'; readonly problem: Problem; readonly variant: Variant }
  | {
      readonly kind: 'loops'
      readonly problem: Problem
      readonly variant: Variant
      readonly device: DeviceChoice
    }
  | {
      readonly kind: 'code'
      readonly problem: Problem
      readonly variant: Variant
      readonly target: TextTarget
    }
  | {
      readonly kind: 'run'
      readonly problem: Problem
      readonly variant: Variant
      readonly device: DeviceChoice
    }
  | { readonly kind: 'devices' }

/** A diagnostic of the text, as an editor shows it. */
export interface Mark {
  readonly from: number
  readonly to: number
  readonly severity: 'error' | 'warning'
  readonly code: string
  readonly message: string
  readonly expected?: string
  readonly hint?: string
  /** Text that can replace the marked range. */
  readonly fixes: readonly string[]
}

export interface ParameterInfo {
  readonly name: string
  readonly required: boolean
}

export interface KernelInfo {
  readonly name: string
  readonly schedules: readonly { readonly name: string; readonly parameters: readonly ParameterInfo[] }[]
  /** The tensor to which the matrix is bound; `null` if no input has two dimensions. */
  readonly matrix: string | null
  /** Sizes and scalars that the matrix does not determine. */
  readonly values: readonly {
    readonly name: string
    readonly kind: 'size' | 'scalar'
    readonly integer: boolean
    /** The value unless another is given. */
    readonly initial: number
  }[]
  /** Names of axes, buffers and parameters, for completion. */
  readonly names: readonly string[]
}

export interface Problems {
  readonly marks: readonly Mark[]
  /** Diagnostics without a place in the text, as text. */
  readonly elsewhere: readonly string[]
}

export interface Checked extends Problems {
  /** `null` if the text has errors outside of schedules. */
  readonly kernels: readonly KernelInfo[] | null
  readonly formats: readonly string[]
}

export interface MatrixInfo {
  readonly rows: number
  readonly columns: number
  readonly nonzeros: number
  readonly dtype: string
}

export interface Picture {
  readonly svg: string
  readonly format: string
  readonly nonzeros: number
  readonly slots: number
  readonly bytes: number
  readonly csrBytes: number
  readonly parts: number
}

export interface Loops {
  /** The loops before all steps, then after each step. */
  readonly states: readonly { readonly step: string; readonly text: string }[]
  /** Reason for the schedule if a dispatch selected it. */
  readonly note: string
  /** Error of the first rejected step, as text. */
  readonly error?: string
}

export interface Code {
  readonly text: string
  readonly note: string
}

export interface RunResult {
  readonly device: string
  readonly schedule: string
  readonly ok: boolean
  readonly verdict: string
  readonly problems: readonly string[]
  readonly warnings: readonly string[]
  readonly relativeError: number
  readonly elements: number
  readonly compared: number
  /** Milliseconds of a run, for each sample; number of runs in all samples. */
  readonly times: readonly number[]
  readonly runs: number
  readonly buildMs: number
  readonly bindMs: number
  readonly verifyMs: number
  readonly bytes: number
  readonly random: readonly string[]
  readonly deterministic: boolean
  /** The first values of each output. */
  readonly outputs: readonly {
    readonly name: string
    readonly shape: readonly number[]
    readonly values: readonly number[]
  }[]
}

export interface DeviceInfo {
  readonly webgpu: string | null
  /** True if WebGPU runs in software. */
  readonly software: boolean
}

export interface Results {
  readonly check: Checked
  readonly steps: Problems
  readonly matrix: MatrixInfo
  readonly picture: Picture
  readonly loops: Loops
  readonly code: Code
  readonly run: RunResult
  readonly devices: DeviceInfo
}

/** An answer, or the error as text. */
export type Reply = { readonly id: number } & (
  | { readonly result: Results[keyof Results] }
  | { readonly error: string }
)
