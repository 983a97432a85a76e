/** Reserved words of generated JavaScript. */
import { reservedWords } from '../../print/reserved-words.ts'
import { HELPERS, JS } from './spellings.ts'

/** Words reserved in any mode, and globals of engines. */
const LANGUAGE = `
abstract arguments await boolean break byte case catch char class const continue debugger default delete do
double else enum eval export extends false final finally float for function goto if implements import in
instanceof int interface let long native new null package private protected public return short static super
switch synchronized this throw throws transient true try typeof undefined var void volatile while with yield
async of get set Math NaN Infinity Number Object Array Float64Array Float32Array Int32Array Uint32Array
Int16Array Uint16Array Int8Array Uint8Array DataView globalThis`

export const reserved = reservedWords(LANGUAGE, [JS], HELPERS, [
  'block_x',
  'block_y',
  'block_z',
  'thread_x',
  'thread_y',
  'thread_z',
  'thread',
  'waiting',
])
