"""Names of sampled people: an international mix, each used once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.seeds import derive, hashes

_FEMALE = """
Maria Anna Fatima Mei Amina Olivia Sofia Yuki Priya Chloe Zainab Elena Ingrid Camila Aisha Hanna Lucia Emma Noor Ewa
Adaeze Beatriz Charlotte Daniela Esra Freya Gabriela Haruka Isabel Jana Kavya Leila Mina Nadia Oksana Paula Qing Rosa
Sara Tereza Ursula Valentina Wanjiru Xiu Yasmin Zofia Alice Birgit Carmen Dalia Emilia Francesca Giulia Helena Ines
Jasmine Katarina Lin Margot Nicole Olga Petra Rania Sinead Thandi Uma Vera Wendy Ximena Yara Zuzana Agnes Bianca Clara
Diana Elif Fiona Grace Hye Irina Julia Keiko Laura Monika Nina Oluchi Pilar Ruth Shreya Tamar Veronika Wilma Yolanda
Abena Bronwyn Chiara Dorota Eszter
"""
_MALE = """
Mohammed James Wei Juan Ahmed Liam Mateo Hiroshi Arjun Lucas Ibrahim Andrei Lars Diego Omar Felix Marco Noah Karim Piotr
Chidi Bruno Thomas Daniel Emre Finn Gustavo Haruto Ivan Jakub Kiran Luis Minh Nikolai Oleksandr Pablo Qiang Rafael
Stefan Tomas Umar Viktor Wanyama Xavier Yusuf Zoltan Adam Bjorn Carlos Darius Emil Francisco Giovanni Henrik Ismail
Jonas Kenji Leo Martin Nathan Oscar Pedro Rashid Sean Thabo Uri Vikram William Ximo Yannis Zdenek Antoine Boris Connor
David Erik Fernando George Hyun Igor Julien Kofi Lorenzo Miguel Nils Obinna Paolo Robert Sanjay Tariq Vincent Walter
Yaw Abdul Benedikt Cheng Dmitri Edgar
"""
_LAST = """
Silva Kim Nguyen Garcia Khan Smith Müller Tanaka Sharma Rossi Okafor Kowalski Andersen Haddad Chen Novak Dubois Santos
Petrov Mensah Jones Yilmaz Fernandez Ali Johansson Sato Patel Ferrari Mwangi Nowak Larsen Hassan Wang Svoboda Martin
Costa Ivanov Boateng Brown Kaya Lopez Rahman Nilsson Suzuki Gupta Esposito Adeyemi Wisniewski Hansen Mansour Li Horvat
Bernard Oliveira Sokolov Owusu Taylor Demir Martinez Hussain Lindberg Yamamoto Singh Bianchi Eze Wojcik Olsen Nasser
Zhang Kovacs Moreau Pereira Volkov Asante Wilson Celik Sanchez Malik Berg Ito Kumar Romano Balogun Zielinski Dahl Aziz
Liu Toth Laurent Almeida Popov Appiah Walker Aydin Ramirez Begum Holm Watanabe Reddy Colombo Kamau Lewandowski Bakke
Saleh Huang Nagy Lefevre Ribeiro Orlov Osei Murphy Arslan Torres Iqbal Strand Kobayashi Nair Ricci Otieno Dvorak Lund
Farah Park Szabo Girard Carvalho Melnyk Abebe Kelly Polat Vargas Chowdhury Vik Kato Iyer Marino Ndlovu Cerny Moen Jaber
Lee Papadopoulos Fontaine Gomes Shevchenko Tesfaye Walsh Korkmaz Castillo Siddiqui Hoffmann Yoshida Mehta Greco Dlamini
Prochazka Haugen Khoury Choi Georgiou Mercier Rocha Bondar Bekele Byrne Ozturk Mendoza Akhtar Schneider Hayashi Desai
Conti Nkosi Vesely Solberg Rahimi Tran Dimitrov Blanc Teixeira Kravets Haile Evans Kurt Rojas Qureshi Weber Mori Joshi
Bruno Zulu Urban
"""
FEMALE, MALE, LAST = tuple(_FEMALE.split()), tuple(_MALE.split()), tuple(dict.fromkeys(_LAST.split()))
#: Both lists of first names are used up to this length, so that a number means one name whatever the gender.
_FIRST_COUNT = min(len(FEMALE), len(MALE))
#: Names without initials.
_NAMES_PER_TIER = _FIRST_COUNT * len(LAST)
_LETTERS = 26


def draw_names(seed: int, start: int, genders: NDArray[np.int8]) -> list[str]:
    """Draw names for the people from number `start` on; gender 0 is female, 1 male, others take from both lists.

    Number -> (first, last, initials) is one to one, and no two lists share a first name at different places. So the
    name of a person does not depend on how many people there are, and no name comes twice. The first tier has plain
    names; each later one has its own middle initials.
    """
    result: list[str] = []
    stop = start + len(genders)
    while start < stop:
        tier = start // _NAMES_PER_TIER
        end = min(stop, (tier + 1) * _NAMES_PER_TIER)
        key, places = derive(seed, "names", tier), np.arange(start, end) - tier * _NAMES_PER_TIER
        shuffled = np.argsort(hashes(key, np.arange(_NAMES_PER_TIER)), kind="stable")[places]
        either = (hashes(key, places, 1) & np.uint64(1)).astype(np.int64)
        mine = genders[len(result) : len(result) + end - start]
        lists = np.where((mine < 0) | (mine > 1), either, mine).astype(np.int64)
        middle = f" {_write_initials(tier)} " if tier else " "
        firsts = [f"{name}{middle}" for name in (*FEMALE[:_FIRST_COUNT], *MALE[:_FIRST_COUNT])]
        chosen = (lists * _FIRST_COUNT + shuffled // len(LAST)).tolist()
        lasts = (shuffled % len(LAST)).tolist()
        result += [firsts[first] + LAST[last] for first, last in zip(chosen, lasts, strict=True)]
        start = end
    return result


def _write_initials(tier: int) -> str:
    letters = ""
    while tier:
        tier, letter = divmod(tier - 1, _LETTERS)
        letters = chr(ord("A") + letter) + letters
    return " ".join(f"{letter}." for letter in letters)
