/** sparsetile/search, in Node: spaces of schedules; what was measured is kept, and found again. */
export * from './search/records/index.ts'
export { type SketchOptions, type SketchSpace, sketches } from './search/sketches.ts'
