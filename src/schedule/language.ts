/** The language with its steps: what reads files, and programs from them. */
import { parserFor } from '../ast/parse.ts'
import { loaderOf } from '../ast/resolve-imports.ts'
import type { StepSyntax } from '../ast/step-syntax.ts'
import { COORD_STEPS } from './coords/primitives.ts'
import { LOOP_STEPS } from './primitives.ts'

// Words of both stages have one syntax; that of `as`, which comes after a buffer, is in the grammar.
const { as: _, ...others } = COORD_STEPS
/** The steps that begin with a word, by it. */
export const STEP_SYNTAX: Readonly<Record<string, StepSyntax>> = { ...others, ...LOOP_STEPS }

const parser = parserFor(Object.values(STEP_SYNTAX))
export const { parse, parseSteps } = parser
export const { loadFiles, loadProgram, programOf } = loaderOf(parser)
