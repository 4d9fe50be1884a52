// SPDX-License-Identifier: MIT
// Some given names, for makemore without other names.
export const someNames = `
aaron abigail adam adrian agnes alan albert alexander alice amanda amelia amy andrea andrew angela anna
anthony arthur barbara beatrice benjamin bernard bertha bradley brandon brenda brian bruce caleb camille
carla carmen caroline catherine cecilia charles charlotte chloe christian christina claire clara clarence
claudia colin connor cynthia daniel david deborah dennis diana dominic donald dorothy douglas dylan edgar
edith edward eleanor elena elijah elizabeth ella emily emma eric ernest esther ethan eugene eva evelyn
felix fiona florence frances francis frank frederick gabriel george gerald gloria gordon grace gregory
gustav hannah harold harriet harry hazel heather helen henry herbert howard hugo ian ida irene isaac
isabel ivan jack jacob james jane janet jasmine jason jean jennifer jeremy jessica joan joel john jonathan
joseph joshua joyce juan judith julia julian karen karl katherine keith kelly kenneth kevin kimberly laura
lawrence leah leo leonard lillian linda lisa louis lucas lucy luis lydia madeleine marcus margaret maria
marie marion mark martha martin mary matilda matthew maxwell megan melissa michael michelle miles miriam
monica nancy naomi natalie nathan nicholas nicole nina noah nora norman oliver olivia oscar owen pamela
patricia patrick paul paula peter philip phoebe rachel ralph raymond rebecca richard robert roger roland
rosa rose roy russell ruth ryan samantha samuel sandra sarah scott sebastian sharon simon sofia sophie
stella stephen steven susan sylvia teresa thomas timothy tobias tracy ursula valerie vera victor victoria
vincent violet virginia walter wanda wendy william winston xavier yvonne zachary zoe`.trim().split(/\s+/);
