/**
 * sparsetile/search, in Node: spaces of schedules, their points, and what searches them; what was measured is kept, and
 * found again.
 */
export type { OpenSpace, Space } from './api/space.ts'
export * from './search/points.ts'
export * from './search/records/index.ts'
export { type SketchOptions, type SketchSpace, sketches } from './search/sketches.ts'
export { type Decisions, type Make, space } from './search/space.ts'
export { refusalOf, type Survey, type SurveyOptions, survey } from './search/survey.ts'
export { scheduleText, typescriptText } from './search/text.ts'
export type * from './search/types.ts'
