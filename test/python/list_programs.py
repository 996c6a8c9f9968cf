# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that append to lists, and that use lists in other ways."""

import collections
import copy
import itertools
import pickle
import weakref


class List(list):
    pass


class Counting(list):
    """A list that reports another length."""

    def __len__(self):
        return super().__len__() + 10


class Shifted(list):
    def __getitem__(self, i):
        return super().__getitem__(0)


class World:
    def __init__(self, kind=list):
        self.list = kind([1.0])
        self.alias, self.held, self.within = self.list, {"list": self.list}, (self.list,)
        self.push, self.deque, self.count = self.list.append, collections.deque([1.0], 4), 0
        self.other = [5.0]

    @property
    def length(self):
        return len(self.list)

    @property
    def last(self):
        return self.list[-1]

    def add(self, value):
        self.list.append(value)
        return value


PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def last(w, x):
    w.list.append(x * 2)
    return w.list[-1] + 1


@program
def last_of_two(w, x):
    w.list.append(x * 2)
    w.list.append(x * 3)
    return w.list[-1] - w.list[-2]


@program
def beyond_what_it_appended(w, x):
    w.list.append(x * 2)
    return w.list[-1] + w.list[-2]


@program
def first(w, x):
    w.list.append(x * 2)
    return w.list[0] + x


@program
def length(w, x):
    w.list.append(x * 2)
    return x * len(w.list)


@program
def length_by_property(w, x):
    w.list.append(x * 2)
    return x * w.length


@program
def last_by_property(w, x):
    w.list.append(x * 2)
    return w.last + x


@program
def length_ahead(w, x):
    count = len(w.list)
    w.list.append(x * 2)
    return x * count + w.list[-1]


@program
def truth(w, x):
    w.list.append(x)
    return x * 2 if w.list else x


@program
def truth_ahead(w, x):
    known = bool(w.list)
    w.list.append(x)
    return x * 2 if known else x


@program
def iterates(w, x):
    w.list.append(2.0)
    total = x
    for each in w.list:
        total = total + each
    return total


@program
def sums(w, x):
    w.list.append(2.0)
    return x * sum(w.list)


@program
def looks_for(w, x):
    w.list.append(2.0)
    return x * (2 if 7.0 in w.list else 3)


@program
def compares(w, x):
    w.list.append(2.0)
    return x * (2 if w.list == [1.0, 2.0] else 3)


@program
def is_the_other(w, x):
    w.list.append(2.0)
    return x * (2 if w.list is w.other else 3)


@program
def through_an_alias(w, x):
    w.list.append(x * 2)
    w.alias.append(x * 3)
    return w.held["list"][-1] + w.within[0][-2]


@program
def changed_through_an_alias(w, x):
    w.list.append(x * 2)
    w.alias.pop(0)
    return w.list[-1] + 1


@program
def emptied_through_an_alias(w, x):
    w.list.append(x * 2)
    w.alias.clear()
    w.list.append(x * 3)
    return w.list[-1]


@program
def by_a_kept_method(w, x):
    w.push(x * 2)
    return w.list[-1] + 1


@program
def by_a_method(w, x):
    return w.add(x * 2) + w.list[-1]


@program
def in_a_closure(w, x):
    kept = w.list

    def add(value):
        kept.append(value)
        return kept[-1]

    return add(x * 2) + add(x * 3)


@program
def in_a_comprehension(w, x):
    [w.list.append(x * i) for i in range(3)]
    return w.list[-1] - w.list[-3]


@program
def extends(w, x):
    w.list.extend([x, x * 2])
    return w.list[-1] + w.list[-2]


@program
def extends_with_what_it_does_not_know(w, x):
    w.list.extend(each * 2 for each in (x, x))
    return w.list[-1]


@program
def extends_with_another_list(w, x):
    w.list.extend(w.other)
    return x * w.list[-1]


@program
def extends_with_itself(w, x):
    w.list.append(x)
    w.list.extend(w.list)
    return w.list[-1]


@program
def adds(w, x):
    w.list += [x * 2]
    return w.list[-1]


@program
def adds_another_list(w, x):
    w.list += w.other
    return x * w.list[-1]


@program
def adds_itself(w, x):
    w.list += w.list
    return x * w.list[-1]


@program
def doubles(w, x):
    w.list.append(2.0)
    w.list *= 2
    return x * w.list[-1] * w.list[-2]


@program
def takes_its_own_back(w, x):
    w.list.append(x * 2)
    return w.list.pop() + w.list[-1]


@program
def deletes_the_last(w, x):
    w.list.append(x * 2)
    del w.list[-1]
    return x * w.list[-1]


@program
def inserts(w, x):
    w.list.append(x * 2)
    w.list.insert(len(w.list), x * 3)
    return w.list[-1]


@program
def inserts_ahead(w, x):
    w.list.append(x * 2)
    w.list.insert(0, x * 3)
    return w.list[-1] + w.list[0]


@program
def sets_the_last(w, x):
    w.list.append(x * 2)
    w.list[-1] = x * 3
    return w.list[-1]


@program
def sets_a_slice(w, x):
    w.list.append(x * 2)
    w.list[len(w.list) :] = [x * 3]
    return w.list[-1]


@program
def reverses(w, x):
    w.list.append(2.0)
    w.list.reverse()
    return x * w.list[-1]


@program
def sorts(w, x):
    w.list.append(-2.0)
    w.list.sort()
    return x * w.list[-1]


@program
def takes_a_slice(w, x):
    w.list.append(x * 2)
    return w.list[-1:]


@program
def takes_more_than_its_own(w, x):
    w.list.append(x * 2)
    return w.list[-2:]


@program
def copies(w, x):
    w.list.append(x * 2)
    return w.list.copy()[-1] + list(w.list)[-1] + (w.list + [x])[-2]


@program
def copies_deeply(w, x):
    w.list.append(2.0)
    return x * copy.deepcopy(w.list)[-1] * len(copy.copy(w.list))


@program
def pickles(w, x):
    w.list.append(2.0)
    return x * pickle.loads(pickle.dumps(w.list))[-1]


@program
def unpacks(w, x):
    w.list.append(x * 2)
    *_, kept = w.list
    return kept


@program
def enumerates(w, x):
    w.list.append(2.0)
    return x * [i for i, _ in enumerate(w.list)][-1]


@program
def goes_back(w, x):
    w.list.append(x * 2)
    return next(iter(reversed(w.list)))


@program
def zips(w, x):
    w.list.append(2.0)
    return x * len(list(zip(w.list, itertools.count())))


@program
def says(w, x):
    w.list.append(2.0)
    return {str(w.list): x}


@program
def is_what_it_appended(w, x):
    y = x * 2
    w.list.append(y)
    return x * (2 if w.list[-1] is y else 3)


@program
def writes_to_the_last(w, x):
    w.list.append(x * 2)
    w.list[-1].add_(1)
    return w.list[-1] * 2


@program
def keeps_a_number(w, x):
    w.list.append(x.sum().item())
    return x * w.list[-1]


@program
def keeps_a_counter(w, x):
    w.count += 1
    w.list.append(w.count)
    return x * w.list[-1]


@program
def keeps_a_structure(w, x):
    w.list.append({"x": [x * 2]})
    w.list[-1]["x"].append(x * 3)
    return w.list[-1]["x"][-1]


@program
def keeps_the_list(w, x):
    w.list.append(w.other)
    w.list[-1].append(2.0)
    return x * w.list[-1][-1] * w.other[-1]


@program
def keeps_itself(w, x):
    w.other.append(w.other)
    return x * (2 if w.other[-1] is w.other else 3)


@program
def gives_the_list(w, x):
    w.list.append(x * 2)
    return w.list, w.list[-1]


@program
def another_list_by_now(w, x):
    w.list = []
    w.list.append(x * 2)
    return w.list[-1] + len(w.list)


@program
def another_list_at_times(w, x):
    chosen = w.list if w.count % 2 else w.other
    chosen.append(x * 2)
    w.count += 1
    return chosen[-1] + 1


@program
def a_variable_index(w, x):
    w.list.append(x * 2)
    return w.list[-1 - w.count % 2]


@program
def a_positive_index(w, x):
    w.list.append(x * 2)
    return w.list[len(w.list) - 1]


@program
def catches(w, x):
    try:
        return x * w.list[3]
    except IndexError:
        w.list.append(2.0)
        return w.list[-1] * x


@program
def pops_while_long(w, x):
    w.list.append(x * 2)
    while len(w.list) > 3:
        w.list.pop(0)
    return w.list[-1]


@program
def a_deque(w, x):
    w.deque.append(x * 2)
    return w.deque[-1] + len(w.deque)


@program
def an_argument_of_c(w, x):
    list.append(w.list, x * 2)
    return w.list[-1]


@program
def by_getattr(w, x):
    w.list.append(x * 2)
    return list.__getitem__(w.list, -1)


@program
def by_map(w, x):
    list(map(w.list.append, [x, x * 2]))
    return w.list[-1]


@program
def weakly(w, x):
    made = List([x * 2])
    found = weakref.ref(made)
    w.list.append(found().pop())
    return w.list[-1]
