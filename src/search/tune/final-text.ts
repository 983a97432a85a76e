/** A kernel of the last comparison as text. */
import { choiceText } from '../choice/text.ts'
import type { Final } from './index.ts'

const SOLE = [{ conditions: [], candidate: 0 }]

/** A schedule that is none of the program's, with the format that it takes besides, as the language writes them. */
export function finalText({ kernel, declares }: Pick<Final, 'kernel' | 'declares'>): string {
  const { text } = choiceText(kernel, SOLE, [{ kernel, call: null, requires: [] }])
  return declares ? `${declares}\n${text}` : text
}
