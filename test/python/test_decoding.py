# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoding token by token: a cache of keys and values is an argument whose tensors programs read
and write, and an object that they give back."""

import copy

import pytest
import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    DynamicCache,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    StaticCache,
    T5Config,
    T5ForConditionalGeneration,
)
from transformers.cache_utils import StaticLayer

import weft
from weft.capture import argument_objects
from weft.capture.argument_objects import ChangingObjects
from weft.capture.signature import Declined, describe

pytestmark = [
    pytest.mark.usefixtures("no_grad", "verified"),
    pytest.mark.filterwarnings("ignore:PyTorch runs this call"),
]

nn = torch.nn
PROMPT = 6


def gpt2():
    config = GPT2Config(
        n_layer=2, n_head=2, n_embd=32, vocab_size=100, n_positions=64,
        bos_token_id=0, eos_token_id=None,
    )  # fmt: skip
    return GPT2LMHeadModel(config).eval()


def llama():
    config = LlamaConfig(
        num_hidden_layers=2, hidden_size=32, intermediate_size=64, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=100, max_position_embeddings=64,
        eos_token_id=None, bos_token_id=0,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def generate(model, ids, tokens=10, **settings):
    settings = {"do_sample": False, "pad_token_id": 0, "max_new_tokens": tokens, **settings}
    return model.generate(ids, **settings)


def stats_of(compiled):
    """What it did, and the sizes of its ranges."""
    stats = compiled.stats()
    assert not stats["breaks"], stats["breaks"]
    return stats


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("make", "how"), [(gpt2, "greedy"), (llama, "greedy"), (gpt2, "beams"), (llama, "batch")]
)
def test_a_static_cache_needs_one_program_for_all_steps(make, how):
    model = make()
    ids = torch.randint(1, 100, (3 if how == "batch" else 1, PROMPT))
    settings = {"cache_implementation": "static", "num_beams": 2 if how == "beams" else 1}
    expected = generate(model, ids, **settings)
    compiled = weft.compile(model, capture="export")
    for _ in range(3):
        assert torch.equal(generate(compiled, ids, **settings), expected)
    stats = stats_of(compiled)
    # That of the prompt, and that of the steps; the first call of each is compared.
    assert stats["graphs"] == 2 and stats["hits"] == 3 * 10 - 2


def test_a_static_cache_of_any_length_needs_three_programs():
    """The longer the prompt, the longer the cache, which is an attribute of its layers."""
    model = gpt2()
    compiled = weft.compile(model, capture="export")
    settings = {"cache_implementation": "static"}
    for length, tokens in ((5, 4), (9, 4), (9, 7)):
        ids = torch.randint(1, 100, (1, length))
        expected = generate(model, ids, tokens, **settings)
        assert torch.equal(generate(compiled, ids, tokens, **settings), expected)
    # The prompt; the steps over a cache of the first length, and over any.
    stats = stats_of(compiled)
    assert stats["graphs"] == 3 and len(stats["ranges"]) == 2 and not stats["specialized"]


@pytest.mark.at_length
def test_prompts_of_many_lengths_are_one_program():
    model = gpt2()
    compiled = weft.compile(model, capture="export")
    settings = {"cache_implementation": "static", "max_length": 12}
    for length in range(2, 9):
        ids = torch.randint(1, 100, (1, length))
        expected = generate(model, ids, tokens=None, **settings)
        assert torch.equal(generate(compiled, ids, tokens=None, **settings), expected)
    # The prompt, which is traced for one length first, and the steps.
    stats = stats_of(compiled)
    assert stats["captures"] == 3 and stats["graphs"] == 2 and len(stats["ranges"]) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", [gpt2, llama])
def test_a_dynamic_cache_needs_one_program_for_all_lengths(make):
    model = make()
    compiled = weft.compile(model, capture="export")
    for length in (PROMPT, PROMPT + 1, PROMPT + 5):
        ids = torch.randint(1, 100, (1, length))
        assert torch.equal(generate(compiled, ids, 12), generate(model, ids, 12))
    # That of the prompt, and that of the steps.
    stats = stats_of(compiled)
    assert stats["graphs"] == len(stats["ranges"]) == 2
    assert max(stats["ranges"].values()) == 3 * 11 - 2


def mistral():
    config = MistralConfig(
        num_hidden_layers=2, hidden_size=32, intermediate_size=64, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, vocab_size=100, sliding_window=12,
        eos_token_id=None, bos_token_id=0,
    )  # fmt: skip
    return MistralForCausalLM(config).eval()


@pytest.mark.at_length
def test_a_sliding_window_has_a_program_ahead_of_its_end_and_one_behind():
    """The cache holds the last 11 tokens, and counts all that there have been."""
    model, ids = mistral(), torch.randint(1, 100, (1, PROMPT))
    compiled = weft.compile(model, capture="export")
    assert torch.equal(generate(compiled, ids, 20), generate(model, ids, 20))
    stats = stats_of(compiled)
    # That of the prompt, those ahead of the window's end and behind it.
    assert stats["graphs"] == 3
    longer = torch.randint(1, 100, (1, PROMPT + 1))
    assert torch.equal(generate(compiled, longer, 2), generate(model, longer, 2))
    assert not stats_of(compiled)["specialized"]
    assert any("1..10" in each for each in stats["ranges"])
    assert any("f32[1, 2, 11, 8], 12..256" in each for each in stats["ranges"])


def test_prompts_longer_than_a_window_share_the_program_of_its_steps():
    """What a prompt leaves in the cache is a part of its keys, which are as far apart as the prompt
    is long."""
    model = mistral()
    compiled = weft.compile(model, capture="export")
    for length in (17, 13, 22):
        ids = torch.randint(1, 100, (1, length))
        assert torch.equal(generate(compiled, ids, 4), generate(model, ids, 4))
    assert stats_of(compiled)["graphs"] == 2


def test_steps_with_a_mask_over_their_cache_share_a_program():
    """Prompts that are padded at the left; the mask is as long as the cache and one token more."""
    model = llama()
    compiled = weft.compile(model, capture="export")
    for length in (5, 9, 17):
        ids, mask = torch.randint(1, 100, (2, length)), torch.ones(2, length, dtype=torch.int64)
        mask[0, :2] = 0
        found = generate(compiled, ids, 6, attention_mask=mask)
        assert torch.equal(found, generate(model, ids, 6, attention_mask=mask))
    stats = stats_of(compiled)
    assert stats["graphs"] == 2 and not stats["breaks"]


class _Shows(nn.Module):
    def forward(self, x, past):
        keys = past.layers[0].keys
        return x.mean(1, keepdim=True) + keys.sum(2), keys.transpose(1, 2) if self.training else x


def test_parts_of_longer_rows_in_an_object_keep_their_strides_where_they_are_shown():
    compiled, x = weft.compile(_Shows()), torch.randn(1, 9, 8)
    for training in (False, True):
        compiled.train(training)
        for n, gap in ((3, 7), (5, 7), (4, 9), (6, 5)):
            past = DynamicCache()
            past.update(torch.randn(1, 2, gap, 8), torch.randn(1, 2, gap, 8), 0)
            past.layers[0].keys = past.layers[0].keys[:, :, :5]
            expected = _Shows().train(training)(x[:, :n].contiguous(), past)
            found = compiled(x[:, :n].contiguous(), past)
            for one, other in zip(found, expected, strict=True):
                assert one.stride() == other.stride()
                torch.testing.assert_close(one, other)
            assert found[1].data_ptr() == past.layers[0].keys.data_ptr() or not training


def t5():
    config = T5Config(
        vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
        decoder_start_token_id=0, eos_token_id=None,
    )  # fmt: skip
    return T5ForConditionalGeneration(config).eval()


def bart():
    config = BartConfig(
        vocab_size=100, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
        max_position_embeddings=40, decoder_start_token_id=1, bos_token_id=1, eos_token_id=None,
        forced_eos_token_id=None,
    )  # fmt: skip
    return BartForConditionalGeneration(config).eval()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", [t5, bart])
def test_an_encoder_and_a_decoder(make):
    model = make()
    compiled = weft.compile(model, capture="export")
    for length in (PROMPT, PROMPT, PROMPT + 3, PROMPT + 7):
        ids = torch.randint(3, 100, (1, length))
        assert torch.equal(generate(compiled, ids), generate(model, ids))
    # The first step, which fills both caches, and the others, whatever the lengths. The encoder is
    # no call of the model.
    stats = stats_of(compiled)
    assert stats["graphs"] == len(stats["ranges"]) == 2
    # What the encoder gives is given back: the first step of the last prompt runs in a program.
    assert all(stats["ranges"].values())
    # The table of positions ends there.
    assert any(("1..39" if make is bart else "1..256") in each for each in stats["ranges"])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", ["beams", "sampled"])
def test_beams_and_samples_over_a_dynamic_cache(how):
    model, ids = gpt2(), torch.randint(1, 100, (1, PROMPT))
    settings = {"num_beams": 3} if how == "beams" else {"do_sample": True, "top_k": 20}

    def seeded(each):
        torch.manual_seed(3)
        return generate(each, ids, 10, **settings)

    compiled = weft.compile(model, capture="export")
    expected = seeded(model)
    for _ in range(2):
        assert torch.equal(seeded(compiled), expected)
    assert stats_of(compiled)["graphs"] <= 3


@pytest.mark.at_length
def test_beside_the_calls():
    model = llama()
    ids = torch.randint(1, 100, (1, PROMPT))
    settings = {"cache_implementation": "static"}
    expected = generate(model, ids, **settings)
    compiled = weft.compile(model, background=True)
    for _ in range(3):
        assert torch.equal(generate(compiled, ids, **settings), expected)
        assert compiled.wait()
    assert compiled.stats()["graphs"] <= 2 and compiled.stats()["hits"] >= 9


class Step(nn.Module):
    """One step of attention over a cache."""

    def forward(self, x, cache, scale=1.0):
        keys, values = cache.update(x, x * 2, 0)
        scores = torch.softmax(x @ keys.transpose(-1, -2) * scale, -1)
        return {"result": scores @ values, "cache": cache, "length": cache.get_seq_length()}


def filled(rows=1, length=8):
    config = LlamaConfig(num_hidden_layers=1, num_attention_heads=1, hidden_size=4)
    cache = StaticCache(config=config, max_cache_len=length)
    cache.update(torch.randn(rows, 1, 2, 4), torch.randn(rows, 1, 2, 4), 0)
    return cache


def tensors(cache):
    return argument_objects.flatten(cache)[0]


def test_the_object_is_written_in_place_and_given_back(compiled_only):
    compiled, cache = weft.compile(Step()), filled()
    twin, before = copy.deepcopy(cache), tensors(cache)
    for _ in range(4):
        x = torch.randn(1, 1, 1, 4)
        result, expected = compiled(x, cache), Step()(x, twin)
        assert result["cache"] is cache
        assert all(map(torch.Tensor.is_set_to, tensors(cache), before))
        assert torch.equal(result["length"], expected["length"])
        torch.testing.assert_close(result["result"], expected["result"])
        for own, eager in zip(tensors(cache), tensors(twin), strict=True):
            torch.testing.assert_close(own, eager)
    assert compiled.stats()["graphs"] == 1 and compiled.stats()["hits"] == 3


def test_another_object_of_the_same_form_is_the_programs(compiled_only):
    compiled = weft.compile(Step())
    for _ in range(4):
        cache, x = filled(), torch.randn(1, 1, 1, 4)
        twin = copy.deepcopy(cache)
        result = compiled(x, cache=cache)
        assert result["cache"] is cache
        torch.testing.assert_close(result["result"], Step()(x, twin)["result"])
    assert compiled.stats()["captures"] == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("change", ["attribute", "length", "flag", "class"])
def test_what_it_holds_besides_tensors_is_part_of_the_program(change, monkeypatch, compiled_only):
    def halved(self, keys, values, *args, **kwargs):
        return keys / 2, values / 2

    compiled, x = weft.compile(Step()), torch.randn(1, 1, 1, 4)
    for _ in range(2):
        compiled(x, filled())
    cache = filled(length=10 if change == "length" else 8)
    if change == "attribute":
        cache.layers[0].note = "another"
    elif change == "flag":
        cache.layers[0].max_cache_len = True
    elif change == "class":
        monkeypatch.setattr(StaticLayer, "update", halved)
    twin = copy.deepcopy(cache)
    for _ in range(2):
        result, expected = compiled(x, cache), Step()(x, twin)
        torch.testing.assert_close(result["result"], expected["result"])
    assert compiled.stats()["graphs"] == 2


class Noting(Step):
    """What it notes of a cache, as transformers' models do, is no part of what is computed."""

    length = 0

    def forward(self, x, cache, scale=1.0):
        return super().forward(x, cache, scale)


def test_lengths_that_a_model_notes_are_no_part_of_its_state(compiled_only):
    model = Noting()
    compiled, x = weft.compile(model, automatic=False), torch.randn(1, 1, 1, 4)
    for length in (4, 6, 8, 7):
        cache = filled(length=length)
        model.length, twin = length, copy.deepcopy(cache)
        torch.testing.assert_close(compiled(x, cache)["result"], model(x, twin)["result"])
    # The first length, and all others.
    stats = compiled.stats()
    assert stats["graphs"] == stats["captures"] == 2 and [*stats["ranges"].values()] == [2]


def test_past_the_end_pytorchs_error_is_raised():
    compiled, cache, x = weft.compile(Step()), filled(length=4), torch.randn(1, 1, 1, 4)
    for _ in range(2):
        compiled(x, cache)
    kept, hits = [each.clone() for each in tensors(cache)[:2]], compiled.stats()["hits"]
    with pytest.raises(IndexError, match="index"):
        compiled(x, cache)
    assert compiled.stats()["hits"] == hits > 0
    assert any(torch.equal(kept[0], each) for each in tensors(cache))


def test_objects_of_the_users_run_in_pytorch():
    class Own(StaticCache):
        pass

    config = LlamaConfig(num_hidden_layers=1, num_attention_heads=1, hidden_size=4)
    cache, x = Own(config=config, max_cache_len=8), torch.randn(1, 1, 2, 4)
    compiled = weft.compile(Step(), capture="export")
    for _ in range(2):
        compiled(x, cache)
    assert "Own, which is no pytree" in compiled.stats()["breaks"][0]


def test_shared_and_cyclic_contents_run_in_pytorch():
    cache, x = filled(), torch.randn(1, 1, 1, 4)
    cache.layers.append(cache.layers[0])
    compiled = weft.compile(Step(), capture="export")
    twin = copy.deepcopy(cache)
    torch.testing.assert_close(compiled(x, cache)["result"], Step()(x, twin)["result"])
    assert "two ways" in compiled.stats()["breaks"][0]
    cyclic = filled()
    cyclic.itself = cyclic
    assert weft.compile(Step(), capture="export")(x, cyclic)["cache"] is cyclic


def test_gradients_and_a_cache_run_in_pytorch():
    compiled, cache = weft.compile(Step()), filled()
    x = torch.randn(1, 1, 1, 4, requires_grad=True)
    with torch.enable_grad():
        for _ in range(2):
            cache = filled()
            compiled(x, cache)["result"].sum().backward()
    assert x.grad is not None and compiled.stats()["graphs"] == 0


def test_a_class_whose_objects_always_change_is_refused_as_such():
    changing, signature = ChangingObjects(), describe((filled(),), {})
    changing.refuse(signature)
    changing.note(signature, "they change")
    types = []
    for _ in range(argument_objects._MANY + 1):
        with pytest.raises(Declined, match="they change") as caught:
            changing.refuse(signature)
        types.append(caught.value.type)
    assert types == [None] * argument_objects._MANY + [StaticCache]
    changing.refuse(describe((DynamicCache(),), {}))
