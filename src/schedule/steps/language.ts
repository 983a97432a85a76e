/** The language with its steps: the parsers, and the loaders of files and programs. */

import { loaderOf } from '../../ast/imports/resolve-imports.ts'
import type { StepSyntax } from '../../ast/nodes/step-syntax.ts'
import { parserFor } from '../../ast/parse/parse.ts'
import { COORD_STEPS } from '../coordinates/steps.ts'
import { LOOP_STEPS } from '../primitives.ts'

// A word has one syntax in both stages. The grammar has the syntax of `as`, which comes after a buffer.
const { as: _, ...others } = COORD_STEPS
/** The steps that begin with a word, by this word. */
export const STEP_SYNTAX: Readonly<Record<string, StepSyntax>> = { ...others, ...LOOP_STEPS }

const parser = parserFor(Object.values(STEP_SYNTAX))
export const { parse, parseSteps } = parser
export const { loadFiles, loadProgram, programOf } = loaderOf(parser)
