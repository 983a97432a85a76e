/** Common properties of AST nodes: spans, surrounding comments, names. */
import type { Span } from '../diagnostics/diagnostic.ts'

export const SCALAR_TYPES = ['f64', 'f32', 'f16', 'bf16', 'i32', 'u32', 'i8', 'u8', 'bool'] as const
export type ScalarType = (typeof SCALAR_TYPES)[number]

export interface Node {
  readonly span: Span
}

/** A comment as written, delimiters included, without the line break. */
export interface Comment extends Node {
  readonly text: string
  /** There is a blank line before it. */
  readonly blank?: boolean
}

/** Comments around a node, used only by the printer. */
export interface Trivia {
  /** There is a blank line between the node and the comments before it. */
  readonly blank?: boolean
  /** On the lines before the node. */
  readonly before?: readonly Comment[]
  /** On the line where the node ends. */
  readonly after?: readonly Comment[]
  /** On the line where the node's block opens. */
  readonly open?: readonly Comment[]
  /** Before the closing brace of the node's block; for a file, at its end. */
  readonly end?: readonly Comment[]
  /** As `open` and `end`, for the `else` block. */
  readonly openElse?: readonly Comment[]
  readonly endElse?: readonly Comment[]
}

/** A node that occupies lines of its own and can carry comments. */
export interface Item extends Node {
  readonly trivia?: Trivia | undefined
}

export interface Ident extends Node {
  readonly name: string
}
export interface Path extends Node {
  readonly value: string
}
export interface TypeName extends Node {
  readonly name: ScalarType
}
